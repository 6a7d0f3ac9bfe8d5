#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

// Readable names of a plan's blocks, by the digits that they fix.
class BlockNames {
 public:
  // Requires: both outlive this; the blocks are the plan's.
  BlockNames(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks) {}

  // "k0=2 h0=0..1" for boxes over `digits`; "" if they cover everything.
  [[nodiscard]] std::string of(const std::vector<int>& digits, const std::vector<Box>& boxes) const;
  // The iterations of a compute task, with its target if the nest has several statements.
  [[nodiscard]] std::string of_work(const Task& task) const;

  // "fwd q0=0 k0=2", "k, v k0=2 < 1" (from rank 1), "fold o q0=0".
  [[nodiscard]] std::string of(const Task& task) const;

 private:
  [[nodiscard]] std::string of_data(const Task& task) const;

  const Plan& plan_;
  const Blocks& blocks_;
};

// "2", "0..3", "0|2".
[[nodiscard]] std::string print_values(const std::set<std::int32_t>& values);

// By task. Requires: a verified plan.
[[nodiscard]] std::vector<std::string> name_tasks(const Plan& plan);

}  // namespace harpe
