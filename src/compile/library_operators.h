#pragma once

#include <string>
#include <vector>

#include "compile/request.h"
#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// What libraries support of the operators, as far as that is known without opening them.

// "attention", "attention_bwd", "ag_gemm", … These are also the suites of the benchmark.
[[nodiscard]] const std::vector<std::string>& library_operators();

// Checks that libraries support the program with these parameters, as far as that is known without
// opening them. Errors: G081.
[[nodiscard]] Checked<Ok> check_library_ways(const Program& program,
                                             const std::vector<std::string>& parameters);
// The outputs that libraries compute; `lse` is not among them.
[[nodiscard]] std::vector<std::string> library_outputs(const Program& program);

// For shipped operators only: a user's operator of the same name may differ. Errors: G081.
[[nodiscard]] Checked<Ok> check_library_ways(const Request& subject, const Program& program);

}  // namespace harpe
