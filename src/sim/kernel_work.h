#pragma once

#include <functional>
#include <span>
#include <vector>

#include "machine/machine.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe {

// The work of a launch's kernels as one problem, or several equal ones, for which a leaf has a
// time.
struct LaunchWork {
  LeafShape shape;
  double carried = 0;  // bytes of states that tiles read before they multiply
  double again = 0;  // bytes of B, if the cache does not hold it; each further wave reads it again
  double in_step = 0;  // panels of one B that do not wait: they share a reading of it within a wave
  double joined = 0;   // states of up to 8 queries that are added up one after the other at the end
  friend bool operator==(const LaunchWork&, const LaunchWork&) = default;
};

// The work of one task of a launch, as if it ran alone.
struct TaskPart {
  LaunchWork work;
  const Ref* target = nullptr;  // where it stores its result
  double row_elements = 0;      // of the operand with its rows: queries
  double column_elements = 0;   // of the operand with its columns: keys
  std::size_t panel = 0;        // tasks in a row that add to one target are one panel in K chunks
  double multiplied = 0;        // the share of the panel's depth that earlier tasks have
  bool ends_panel = true;
};

// Bytes of a place that pass through the memory of the launch's rank if kernels touch it once.
using PlaceBytes = std::function<double(const launch::Place&)>;

// The work of GEMMs by their panels. Panels are the rows, the arrivals that they meet are the
// depth, and each B is a problem of its own. Operands are read once. An operand larger than the
// cache is read by each panel, except that panels that do not wait share one reading, and that one
// tile of all rows reads it once. With routes, which leave rows unused, the tasks determine the
// number of operations. Requires: kernels with panels; their tasks.
[[nodiscard]] LaunchWork gemm_work(std::span<const launch::Kernel> kernels,
                                   std::span<const TaskPart> tasks, bool is_one_tile,
                                   const Processor& processor, const PlaceBytes& bytes_of);
// The work of attention by its panels, which have the rows, and its arrivals, which have the
// columns. The tasks determine how many operations masks leave. For a kernel of few queries each
// head group is a problem of its own, which reads the keys. Requires: as gemm_work.
[[nodiscard]] LaunchWork attention_work(std::span<const launch::Kernel> kernels,
                                        std::span<const TaskPart> tasks, bool masked,
                                        const PlaceBytes& bytes_of);
// Tasks that run side by side: more of the same problems.
[[nodiscard]] LaunchWork work_side_by_side(std::span<const TaskPart> tasks);

// Sets the members that say to which panels tasks belong. Requires: the order in which the kernel
// takes them. What it says of depth is of use for GEMMs.
void number_panels(std::span<TaskPart> tasks);

// The share of the launch's time of each task, by its operations. Tasks that add to one target must
// wait for its last chunk: only the first of `waves` waves of tiles can begin before, and the share
// of the other waves goes to the last task that adds to the target.
[[nodiscard]] std::vector<double> shares_of(std::span<const TaskPart> tasks, double waves);

}  // namespace harpe
