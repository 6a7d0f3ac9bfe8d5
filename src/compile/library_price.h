#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"

namespace harpe {

// What NVIDIA's libraries are predicted to take, and how a schedule stands beside it.
struct LibraryPrice {
  std::string way;       // "all-gather, product", as the benchmarks name it
  Picoseconds time;      // of an execution: NCCL's collective and cuBLASLt's product, in a graph
  Picoseconds schedule;  // what the schedule is predicted to take

  // Of the schedule's.
  [[nodiscard]] double ratio() const { return time.seconds() / schedule.seconds(); }
  // By more than predictions of short executions are off.
  [[nodiscard]] bool is_faster() const;
};

// From the machine's samples for libraries: of products of two bytes an element with one collective
// before or behind them, whose ranks are on one host. None for other operators and types, and on
// machines without such samples.
[[nodiscard]] std::optional<LibraryPrice> price_libraries(
    const Program& program, const std::vector<std::string>& parameters, const Mesh& mesh,
    const Machine& machine, Picoseconds schedule);

}  // namespace harpe
