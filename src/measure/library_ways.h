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

// How libraries do an operator that `tune` and `run` have at hand.

// The ways to do a ground program on so many ranks with inputs that outlive them.
using FindWays = std::function<Checked<std::vector<LibraryWay>>(
    const Program& program, std::int64_t ranks, const TensorMap& inputs)>;

// Those of this machine's libraries, looked for in the backend's folders first and opened when they
// are asked for. Errors of what is returned: G081, Gpus::open_baselines'.
[[nodiscard]] FindWays ways_here(const Request& subject, const BackendRequest& backend);

// All that libraries make. Errors: Executor::output's.
[[nodiscard]] Checked<TensorMap> gather_library_outputs(const Executor& executor,
                                                        const Program& program);

// As compare_outputs: the bound is that of the plan, which does the same arithmetic, and of what
// the libraries round beside that (library_margin).
[[nodiscard]] CheckReport compare_library_outputs(const Plan& plan, const TensorMap& outputs,
                                                  const Reference& reference);

}  // namespace harpe
