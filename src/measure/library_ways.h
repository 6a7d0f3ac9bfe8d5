#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compile/session.h"
#include "run/backend.h"
#include "run/baselines.h"
#include "run/check.h"
#include "support/diag.h"

namespace harpe {

// How libraries execute an operator, for `tune` and `run`.

// Finds the ways to execute a ground program on `ranks` ranks, with inputs that outlive them.
using FindWays = std::function<Checked<std::vector<LibraryWay>>(
    const Program& program, std::int64_t ranks, const TensorMap& inputs)>;

// The ways of this machine's libraries, which are searched in the backend's folders first and
// opened on use. Errors of the result: G081, Gpus::open_baselines'.
[[nodiscard]] FindWays ways_here(const Request& subject, const BackendRequest& backend);

// All outputs that libraries compute. Errors: Executor::output's.
[[nodiscard]] Checked<TensorMap> gather_library_outputs(const Executor& executor,
                                                        const Program& program);

// As compare_outputs. The bound is that of the plan, which does the same arithmetic, plus the
// additional rounding of libraries (library_margin).
[[nodiscard]] CheckReport compare_library_outputs(const Plan& plan, const TensorMap& outputs,
                                                  const Reference& reference);

}  // namespace harpe
