#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harpe/api.h"
#include "harpe/error.h"
#include "harpe/plan.h"
#include "harpe/view.h"

namespace harpe {
HARPE_INLINE namespace v1 {
// Reproducible inputs of a plan, of its buffers' types: those that `harpe run` draws of that seed.
// Inputs that follow from others, such as o of q, k and v, take as long as a check. Errors: I502
// too little memory; I505 `progress` has given up.
[[nodiscard]] HARPE_API Checked<std::map<std::string, Tensor>> draw_inputs(
    const Plan& plan, std::uint64_t seed = 0, const Progress& progress = {});

// What multiplies matrices on CPU ranks: libraries (oneDNN, OpenBLAS) where there is one that is
// fit for the machine, or own loops. Results have equal bits for equal kernels alone.
enum class CpuKernels : std::uint8_t { Libraries, Own };

struct RunOptions {
  // Compare outputs with the program's reference; one that is off by more than rounding explains
  // is the error I401. Takes as long as a slow sequential execution in f64; above 2e11
  // floating-point operations, sampled rows.
  bool check = false;
  std::int64_t iterations = 1;                   // executions, back to back
  std::chrono::milliseconds wait_limit{10'000};  // of any wait of one rank for another
  CpuKernels cpu_kernels = CpuKernels::Libraries;
  // Called some ten times a second while ranks work, with how many of their steps are over, and
  // more often in a check; false gives the run up between two steps, or the check (I505).
  Progress progress = {};
};

// An output against the reference.
struct Comparison {
  std::string buffer;
  double error = 0;  // the largest difference, relative to the scale of its row
  double bound = 0;  // what rounding may explain
  std::int64_t rows = 0;
  std::int64_t rows_checked = 0;
};

struct RunResult {
  std::map<std::string, Tensor> outputs;  // those that were given no view
  std::vector<double> times_us;           // wall time of each execution
  std::int64_t bytes_moved = 0;           // between ranks, by one execution
  // Copied between views and whole tensors of the library's: every input, converted or not, and
  // outputs that have a view.
  std::int64_t copied_bytes = 0;
  std::vector<Comparison> checks;
  // What multiplied matrices of each type of an input: {"bf16", "oneDNN"}, {"f32", "own loops"}.
  std::vector<std::pair<std::string, std::string>> products;
};

// Executes a plan on CPU ranks, threads of this process, and returns when they are done. A view
// is a whole tensor of its buffer's shape. Its type may differ from the buffer's, within
// floating-point types (f32, f64, f16, bf16) and within i32 and i64: elements are rounded once.
// Outputs with a view are written there; two indices of it may not name the same memory.
// Calls on several threads each have ranks of their own. Errors: I301, I305 no such buffer; I310 an
// input is missing; I311 an argument, with what it must be and what it is; I304 an index out of
// range; P22x what masks read; I401 a check failed; I502 memory; I505 given up; of kind Fault who
// waited for whom.
[[nodiscard]] HARPE_API Checked<RunResult> run(const Plan& plan,
                                               const std::map<std::string, ConstView>& inputs,
                                               const std::map<std::string, View>& outputs = {},
                                               const RunOptions& options = {});

}  // namespace v1
}  // namespace harpe
