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
  std::vector<NamedFile> inputs;    // the others are drawn from `seed`
  std::vector<NamedFile> outputs;   // written after the run and the check
  std::optional<std::string> load;  // a file: how popular each expert is, for inputs drawn by it
  std::uint64_t seed = 0;
  std::int64_t iterations = 1;
  std::chrono::milliseconds wait_limit{10'000};
  bool check = false;
  bool gathers = false;               // outputs into the outcome
  std::optional<std::string> trace;   // a file
  std::optional<std::string> report;  // a file, which the caller writes from the timeline
  // RunOptions::progress: false gives the run up.
  std::function<bool(std::int64_t done, std::int64_t of)> progress = {};
  BackendRequest backend;
};

struct RunOutcome {
  RunStats stats;                    // empty after a fault
  std::optional<CheckReport> check;  // where asked for, and no fault came first
  TensorMap outputs;                 // where asked for
  std::optional<FaultReport> fault;
};

// Are these inputs, or outputs, of the program? Errors: I301, I305.
[[nodiscard]] Checked<Ok> check_names(const Program& program, const std::vector<std::string>& names,
                                      Role role);
// Can masks and routes read what is in this input, or in a rank's part of it, which is of its
// buffer's type? Errors: check_mask_data's, resolve_route's.
[[nodiscard]] Checked<Ok> check_numbers(const Program& program, const Buffer& buffer,
                                        const TensorMap& inputs);

// Everything that can be refused before the first task: names, files, shapes, what masks read,
// memory. Inputs come back rounded to their buffers' dtypes; those that the program's `given` nests
// make follow from the others where no file gives them. Errors: I1xx to I3xx, I502, P220, P221,
// V106; I505 `limit` is over.
[[nodiscard]] Checked<TensorMap> prepare_run(const Plan& plan, const RunRequest& request,
                                             const TimeLimit& limit = {});

// All outputs. Errors: Executor::output's.
[[nodiscard]] Checked<TensorMap> gather_outputs(const Executor& executor, const Program& program);

// As many as there are cores: of the reference.
[[nodiscard]] int thread_count();

// Executes a verified plan, then checks and writes what was asked for. Outputs of a
// run whose check failed are written too: they show what is wrong. Of several processes the first
// checks and writes. Errors: I505 given up; I102.
[[nodiscard]] Checked<RunOutcome> run(const Plan& plan, const RunRequest& request,
                                      const TensorMap& inputs);

}  // namespace harpe
