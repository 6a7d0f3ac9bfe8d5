#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"

namespace harpe {

// What one task of a launch does: its shape alone, and what it reads and writes, in bytes. Operands
// come first, as many as the statement has, then targets.
struct LaunchPart {
  LeafShape shape;
  std::vector<const Ref*> refs;
  std::vector<double> named;    // per ref: all that it names
  std::vector<double> touched;  // per ref: once, what of that passes through the rank's own memory
  std::size_t operands = 0;
  bool waits = false;  // for more than its queue: it does not go in step with the tasks before it
};

struct LaunchWork {
  LeafShape shape;
  double carried = 0;  // bytes of states that tiles begin from: read before they multiply
  friend bool operator==(const LaunchWork&, const LaunchWork&) = default;
};

// What all tasks of a launch do together. Memory that several of them name is one: sums stay in
// registers from chunk to chunk; a product's columns of B are read by all panels of rows in step,
// or from the cache; only what exceeds that is read again by each task that begins when something
// has come, unless there are `few_rows` in all, which one tile takes. From how much more of each
// operand and target there is than of the first task's follows which extents grew. Requires: at
// least one part; all of one statement.
[[nodiscard]] LaunchWork joined_work(const Plan& plan, const Processor& processor,
                                     std::string_view leaf, bool masked, double few_rows,
                                     std::span<const LaunchPart> parts);

// What part of the launch's time each task takes, by its operations, where only the first of so
// many waves of tiles can begin before the last piece of what makes their targets whole is there:
// the others' part comes with the last task that adds to the same target.
[[nodiscard]] std::vector<double> shares_of(std::span<const LaunchPart> parts, double waves);

}  // namespace harpe
