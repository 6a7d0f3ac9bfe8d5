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
// Reproducible inputs of a plan, in its buffers' types: those that `harpe run` draws with that
// seed. Computing inputs that depend on other inputs, such as o on q, k and v, takes as long as a
// check. Errors: I502 too little memory; I505 `progress` returned false.
[[nodiscard]] HARPE_API Checked<std::map<std::string, Tensor>> draw_inputs(
    const Plan& plan, std::uint64_t seed = 0, const Progress& progress = {});

// What computes GEMMs on CPU ranks: libraries (oneDNN, OpenBLAS), if one suits the machine, or
// Harpe's own loops. Results are bitwise equal only for equal kernels.
enum class CpuKernels : std::uint8_t { Libraries, Own };

struct RunOptions {
  // Compares outputs with the program's reference. An output that differs by more than rounding
  // explains is the error I401. A check takes as long as a slow sequential execution in f64; above
  // 2e11 floating-point operations it checks sampled rows.
  bool check = false;
  std::int64_t iterations = 1;                   // executions, back to back
  std::chrono::milliseconds wait_limit{10'000};  // for each wait of one rank for another
  CpuKernels cpu_kernels = CpuKernels::Libraries;
  // Called about ten times a second while ranks work, with the number of their finished steps, and
  // more often during a check. If it returns false, the run ends between two steps, or the check
  // ends (I505).
  Progress progress = {};
};

// The comparison of an output with the reference.
struct Comparison {
  std::string buffer;
  double error = 0;  // the largest difference, relative to the scale of its row
  double bound = 0;  // the largest difference that rounding may explain
  std::int64_t rows = 0;
  std::int64_t rows_checked = 0;
};

struct RunResult {
  std::map<std::string, Tensor> outputs;  // those without a view in `outputs`
  std::vector<double> times_us;           // wall time of each execution
  std::int64_t bytes_moved = 0;           // between ranks, by one execution
  // Bytes copied between views and the library's whole tensors: every input, converted or not, and
  // the outputs that have a view.
  std::int64_t copied_bytes = 0;
  std::vector<Comparison> checks;
  // The library that computed GEMMs, by input type: {"bf16", "oneDNN"}, {"f32", "own loops"}.
  std::vector<std::pair<std::string, std::string>> products;
};

// Executes a plan on CPU ranks, which are threads of this process, and returns when they are done.
// A view is a whole tensor of its buffer's shape. Its type may differ from the buffer's within the
// floating-point types (f32, f64, f16, bf16) and within i32 and i64; each element is rounded once.
// Outputs with a view are written there; no two indices of such a view may share memory. Concurrent
// calls have separate ranks. Errors: I301, I305 no such buffer; I310 an input is missing; I311 an
// argument, with the wanted and the found value; I304 an index out of range; P22x values that masks
// read; I401 a check failed; I502 memory; I505 `progress` returned false; of kind Fault which rank
// waited for which.
[[nodiscard]] HARPE_API Checked<RunResult> run(const Plan& plan,
                                               const std::map<std::string, ConstView>& inputs,
                                               const std::map<std::string, View>& outputs = {},
                                               const RunOptions& options = {});

}  // namespace v1
}  // namespace harpe
