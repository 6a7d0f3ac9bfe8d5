#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

struct LibraryExecutor {
  std::unique_ptr<Executor> executor;
  // After a run: microseconds of the computation alone, without communication, on the slowest rank
  // while all ranks work: the mean of `executions` back to back. Errors: G005.
  std::function<Checked<double>(std::int64_t executions)> time_arithmetic = {};
};

// A way to run the operator with libraries only. `make` may be called more than once. Its errors:
// G081, G005.
struct LibraryWay {
  std::string name;  // "all-gather, GEMM"
  std::function<Checked<LibraryExecutor>()> make;
};

// NCCL and kernel libraries, opened once for all cases (Gpus::open_baselines).
class Baselines {
 public:
  virtual ~Baselines() = default;

  // The libraries that are present, with versions.
  [[nodiscard]] virtual std::string describe() const = 0;
  // The ways to run a ground program; empty if none is known. `parameters` as given by the user;
  // `inputs` are used by all ways and must outlive them. Errors: those of check_library_ways.
  [[nodiscard]] virtual Checked<std::vector<LibraryWay>> ways(
      const Program& program, const std::vector<std::string>& parameters,
      const TensorMap& inputs) const = 0;
};

}  // namespace harpe
