#pragma once

#include <functional>
#include <span>
#include <vector>

#include "machine/machine.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe {

// What the kernels of a launch do: one problem, or several alike, as a leaf's time is asked for.
struct LaunchWork {
  LeafShape shape;
  double carried = 0;  // bytes of states that tiles begin from: read before they multiply
  friend bool operator==(const LaunchWork&, const LaunchWork&) = default;
};

// What one task of a launch does, as if it were alone.
struct TaskPart {
  LaunchWork work;
  const Ref* target = nullptr;  // where its result goes
  double row_elements = 0;      // of the operand that has its rows: queries
  double column_elements = 0;   // ... its columns: keys
};

// Bytes of a place that pass through the memory of the launch's rank, where kernels touch it once.
using PlaceBytes = std::function<double(const launch::Place&)>;

// GEMMs by their panels: rows are the panels', depth is that of the arrivals that they meet, and
// each B is a problem of its own. Operands are read once; those that exceed the cache again by each
// panel, but no more often than arrivals are waited for, unless one tile takes all rows. Where
// routes leave rows unused the tasks say how many operations there are. Requires: kernels with
// panels; their tasks.
[[nodiscard]] LaunchWork gemm_work(std::span<const launch::Kernel> kernels,
                                   std::span<const TaskPart> tasks, bool is_one_tile,
                                   const Processor& processor, const PlaceBytes& bytes_of);
// Attention by its panels, which have the rows, and its arrivals, which have the columns. The tasks
// say how many operations masks leave. Requires: as gemm_work.
[[nodiscard]] LaunchWork attention_work(std::span<const launch::Kernel> kernels,
                                        std::span<const TaskPart> tasks, bool masked,
                                        const PlaceBytes& bytes_of);
// Tasks beside each other: more of the same problems.
[[nodiscard]] LaunchWork work_side_by_side(std::span<const TaskPart> tasks);

// What part of the launch's time each task takes, by its operations, where only the first of so
// many waves of tiles can begin before the last chunk of what makes their targets whole is there:
// the others' part comes with the last task that adds to the same target.
[[nodiscard]] std::vector<double> shares_of(std::span<const TaskPart> tasks, double waves);

}  // namespace harpe
