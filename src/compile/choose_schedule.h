#pragma once

#include "compile/request.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// The schedule of `auto`: the answer of an earlier search for the same question (answer_of), or the
// search's choice on the machine: its fastest schedule with a name, unless one without is predicted
// to be faster by more than a tenth. Without a search space, or without a machine that is large
// enough, the operator's rule decides (schedule/named/registry.h, choose_auto). Schedules that
// cannot run on `runs_on` are skipped. Errors: read_constraints', load_machine's; S701; S704 none
// satisfies the constraints; I505 beyond `patience`; choose_auto's.
[[nodiscard]] Checked<AutoForm> choose_schedule(const Program& program, const Mesh& mesh,
                                                const Request& request, const Warn& warn);

}  // namespace harpe
