#pragma once

#include <string>
#include <vector>

#include "compile/request.h"
#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// What libraries can do of what operators do, as far as that is known without them.

// "attention", "attention_bwd", "ag_gemm", … They are the suites of the benchmark too.
[[nodiscard]] const std::vector<std::string>& library_operators();

// May libraries do the program with these parameters, as far as that is known without them? Errors:
// G081.
[[nodiscard]] Checked<Ok> check_library_ways(const Program& program,
                                             const std::vector<std::string>& parameters);
// Those that libraries are asked for; they make no `lse`.
[[nodiscard]] std::vector<std::string> library_outputs(const Program& program);

// Of shipped operators alone: a user's of the same name may mean something else. Errors: G081.
[[nodiscard]] Checked<Ok> check_library_ways(const Request& subject, const Program& program);

}  // namespace harpe
