#pragma once

#include "compile/request.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// What `auto` means: what an earlier search of the same found (answer_of), or the search's choice
// on the machine; where there is no space or no machine large enough, the rule of the operator
// (schedule/named/registry.h, choose_auto). What does not run on `runs_on` is passed over.
// Errors: read_constraints', load_machine's; S701; S704 nothing keeps to the constraints; I505
// beyond `patience`; choose_auto's.
[[nodiscard]] Checked<AutoForm> choose_schedule(const Program& program, const Mesh& mesh,
                                                const Request& request, const Warn& warn);

}  // namespace harpe
