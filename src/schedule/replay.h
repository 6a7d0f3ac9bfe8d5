#pragma once

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "schedule/script.h"
#include "support/diag.h"

namespace harpe {

// script -> normal form: checks and applies its steps in order. Pure.
// Requires: program is ground, mesh passed check_mesh.
// Errors: S009, S010 (another program or mesh), and those of the failing step, with a note that
// names the step and the schedule.
[[nodiscard]] Checked<NormalForm> replay(const Program& program, const Mesh& mesh,
                                         const Script& script);

// The script with each step's arguments in the order and form that `derive_script` writes. Errors:
// read_step's.
[[nodiscard]] Checked<Script> canonicalise(Script script);

// The canonical script of a normal form: tile*, refine*, shard* and partial*, balance*, then per
// nest parallelize*, serialize*, shift*, reverse*, stage* and drain*, attributes, and fuse*. Keeps:
// replay(derive_script(form)) == canonicalise(form) for every form whose items all pass the check
// of the primitive that makes them.
[[nodiscard]] Script derive_script(const Program& program, const Mesh& mesh,
                                   const NormalForm& form);

// The same schedule in canonical order: one place line per buffer in the program's order, first for
// buffers that are not temporaries, then for temporaries; pars before loops; moves at a loop in
// order; no split that is only a remainder.
[[nodiscard]] NormalForm canonicalise(const Program& program, NormalForm form);

}  // namespace harpe
