#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run/backend.h"
#include "support/diag.h"

namespace harpe {

// One shape of a benchmark: an operator's parameters, over all ranks.
struct BenchCase {
  std::string name;                     // "llama70b_qkv m=512"
  std::vector<std::string> parameters;  // "m=512" "n=10240" …
  friend bool operator==(const BenchCase&, const BenchCase&) = default;
};

[[nodiscard]] std::string bench_axis(std::string_view suite);  // the mesh axis: "cp", "tp", "ep"

// On GPUs the shapes of real models, on CPU ranks small ones. For experts, the tokens per rank do
// not depend on the number of ranks; other sizes are totals. Errors: U160.
[[nodiscard]] Checked<std::vector<BenchCase>> bench_cases(const std::string& suite, Backend backend,
                                                          std::int64_t ranks);

}  // namespace harpe
