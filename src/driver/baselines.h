#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/backend.h"
#include "exec/executor.h"
#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

struct BaselineRequest {
  int ranks = 1;
  BackendRequest backend;
};

struct LibraryExecutor {
  std::unique_ptr<Executor> executor;
  // After a run: the slowest rank's part of the arithmetic alone.
  std::function<double()> arithmetic_us = {};
};

// How the operator is done without us. Errors of `make`, which may be called more than once: G081,
// G005.
struct LibraryWay {
  std::string name;  // "all-gather, product"
  std::function<Checked<LibraryExecutor>()> make;
};

// May libraries do the program with these parameters, as far as that is known without them? Errors:
// G081.
[[nodiscard]] Checked<Ok> check_library_ways(const Program& program,
                                             const std::vector<std::string>& parameters);
// Those that libraries are asked for; they make no `lse`.
[[nodiscard]] std::vector<std::string> library_outputs(const Program& program);

// NCCL and libraries of kernels, opened once for all cases.
class Baselines {
 public:
  // Errors: G001; those of opening the libraries; G070.
  [[nodiscard]] static Checked<Baselines> open(const BaselineRequest& request);

  // What is there, with versions.
  [[nodiscard]] std::string describe() const;
  // The ways to do a ground program; empty where none is known. Its parameters as they were given,
  // and the inputs that all of them will be given, which outlive the ways. Errors:
  // check_library_ways'.
  [[nodiscard]] Checked<std::vector<LibraryWay>> ways(const Program& program,
                                                      const std::vector<std::string>& parameters,
                                                      const TensorMap& inputs) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Errors: G001; G002, G003, G005 there is no driver, or none that runs.
[[nodiscard]] Checked<int> count_gpus();

}  // namespace harpe
