#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"

namespace harpe {

// The predicted time of NVIDIA's libraries, compared with a schedule.
struct LibraryPrice {
  std::string way;       // "all-gather, GEMM", as the benchmarks name it
  Picoseconds time;      // of an execution: NCCL's collective and cuBLASLt's GEMM, in a graph
  Picoseconds schedule;  // the predicted time of the schedule

  // The libraries' time over the schedule's.
  [[nodiscard]] double ratio() const { return time.seconds() / schedule.seconds(); }
  // True if the difference exceeds the error of predictions for short executions.
  [[nodiscard]] bool is_faster() const;
};

// Predicts from the machine's samples of libraries, for 16-bit GEMMs with one collective before or
// behind them, with all ranks on one host. None for other operators and types, and on machines
// without such samples.
[[nodiscard]] std::optional<LibraryPrice> price_libraries(
    const Program& program, const std::vector<std::string>& parameters, const Mesh& mesh,
    const Machine& machine, Picoseconds schedule);

}  // namespace harpe
