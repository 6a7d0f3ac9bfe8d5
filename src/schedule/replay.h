#pragma once

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "schedule/script.h"
#include "support/diag.h"

namespace harpe {

// script -> normal form: its steps in order, each checked and applied. Pure.
// Requires: program is ground, mesh passed check_mesh.
// Errors: S009, S010 (another program or mesh), and those of the failing step, with a note that
// says which step of which schedule it is.
[[nodiscard]] Checked<NormalForm> replay(const Program& program, const Mesh& mesh,
                                         const Script& script);

// The same script with the arguments of each step as `derive_script` writes them, whatever their
// order and brackets. Errors: read_step's.
[[nodiscard]] Checked<Script> canonicalise(Script script);

// The canonical script of a normal form: tile*, refine*, shard* and partial*, balance*, then per
// nest parallelize*, serialize*, shift*, reverse*, stage* and drain*, attributes, and fuse*. Keeps:
// replay(derive_script(form)) == canonicalise(form) for every form whose items each pass the check
// of the primitive that makes them.
[[nodiscard]] Script derive_script(const Program& program, const Mesh& mesh,
                                   const NormalForm& form);

// The same schedule with what the text leaves free put in order: a place line per buffer that is
// not a temporary, in the program's order, then those of temporaries; pars before loops; moves at a
// loop in order; no split that is only a remainder.
[[nodiscard]] NormalForm canonicalise(const Program& program, NormalForm form);

}  // namespace harpe
