#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "plan/plan.h"
#include "run/backend.h"
#include "run/check.h"
#include "support/diag.h"
#include "support/time_limit.h"

namespace harpe {

// A buffer's file.
struct NamedFile {
  std::string name;
  std::string path;
};

struct RunRequest {
  std::vector<NamedFile> inputs;    // all others are drawn from `seed`
  std::vector<NamedFile> outputs;   // written after the run and the check
  std::optional<std::string> load;  // a file with each expert's popularity, for inputs drawn by it
  std::uint64_t seed = 0;
  std::int64_t iterations = 1;
  std::chrono::milliseconds wait_limit{10'000};
  bool check = false;
  bool gathers = false;               // copies outputs to the outcome
  std::optional<std::string> trace;   // a file
  std::optional<std::string> report;  // a file, which the caller writes from the timeline
  // RunOptions::progress: false abandons the run.
  std::function<bool(std::int64_t done, std::int64_t of)> progress = {};
  BackendRequest backend;
};

struct RunOutcome {
  RunStats stats;                    // empty after a fault
  std::optional<CheckReport> check;  // if requested, and without a fault
  TensorMap outputs;                 // if requested
  std::optional<FaultReport> fault;
};

// Checks that these are inputs, or outputs, of the program. Errors: I301, I305.
[[nodiscard]] Checked<Ok> check_names(const Program& program, const std::vector<std::string>& names,
                                      Role role);
// Checks that masks and routes can use the values of this input, or of a rank's part of it, which
// has its buffer's type. Errors: those of check_mask_data and resolve_route.
[[nodiscard]] Checked<Ok> check_numbers(const Program& program, const Buffer& buffer,
                                        const TensorMap& inputs);

// Checks all that can be refused before the first task: names, files, shapes, data of masks,
// memory. Returns inputs rounded to their buffers' dtypes. Inputs that the program's `given` nests
// compute follow from the others, unless a file gives them. Errors: I1xx to I3xx, I502, P220, P221,
// V106; I505 past `limit`.
[[nodiscard]] Checked<TensorMap> prepare_run(const Plan& plan, const RunRequest& request,
                                             const TimeLimit& limit = {});

// All outputs. Errors: those of Executor::output.
[[nodiscard]] Checked<TensorMap> gather_outputs(const Executor& executor, const Program& program);

// Threads of the reference: the number of cores.
[[nodiscard]] int thread_count();

// Executes a verified plan, then checks and writes what was requested. Outputs are written even if
// the check failed, because they show what is wrong. Of several processes the first checks and
// writes. Errors: I505 abandoned; I102.
[[nodiscard]] Checked<RunOutcome> run(const Plan& plan, const RunRequest& request,
                                      const TensorMap& inputs);

}  // namespace harpe
