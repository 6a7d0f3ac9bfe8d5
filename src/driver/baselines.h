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
  std::vector<std::string> folders;  // where the libraries are, before the usual places
};

// How the operator is done without us. `arithmetic_us`, after a run: the slowest rank's part of the
// arithmetic alone.
struct LibraryWay {
  std::string name;
  Checked<std::unique_ptr<Executor>> executor;
  std::function<double()> arithmetic_us;
};

// NCCL and libraries of kernels, opened once for all cases.
class Baselines {
 public:
  // Errors: G001; those of opening the libraries; G070.
  [[nodiscard]] static Checked<Baselines> open(const BaselineRequest& request);

  // What is there, with versions.
  [[nodiscard]] std::string describe() const;
  // The ways to do a ground program; empty where none is known. Its parameters as they were given,
  // and the inputs that all of them will be given.
  [[nodiscard]] std::vector<LibraryWay> ways(const Program& program,
                                             const std::vector<std::string>& parameters,
                                             const TensorMap& inputs) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Errors: G001; G002, G003, G005 there is no driver, or none that runs.
[[nodiscard]] Checked<int> count_gpus();

}  // namespace harpe
