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
  // After a run: microseconds of the arithmetic alone, without any communication, on the rank that
  // takes longest while all work; the mean of so many executions back to back. Errors: G005.
  std::function<Checked<double>(std::int64_t executions)> time_arithmetic = {};
};

// How the operator is done without us. Errors of `make`, which may be called more than once: G081,
// G005.
struct LibraryWay {
  std::string name;  // "all-gather, product"
  std::function<Checked<LibraryExecutor>()> make;
};

// NCCL and libraries of kernels, opened once for all cases (Gpus::open_baselines).
class Baselines {
 public:
  virtual ~Baselines() = default;

  // What is there, with versions.
  [[nodiscard]] virtual std::string describe() const = 0;
  // The ways to do a ground program; empty where none is known. Its parameters as they were given,
  // and the inputs that all of them will be given, which outlive the ways. Errors:
  // check_library_ways'.
  [[nodiscard]] virtual Checked<std::vector<LibraryWay>> ways(
      const Program& program, const std::vector<std::string>& parameters,
      const TensorMap& inputs) const = 0;
};

}  // namespace harpe
