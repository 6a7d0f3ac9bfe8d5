#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

// The memory that a task's refs cover. For routed data it assumes that all experts are chosen
// equally often.
class RefBytes {
 public:
  // Requires: `plan` and `blocks` outlive this, and the blocks are the plan's.
  RefBytes(const Plan& plan, const Blocks& blocks);

  // Bytes of the elements of a ref, in the type of its allocation.
  [[nodiscard]] double of(const Ref& ref) const;

  // The elements along an axis that these ranges of its digits select, one range per digit.
  [[nodiscard]] std::int64_t length(int axis, std::span<const Range> ranges) const;

 private:
  struct BufferShare {
    int index = 0;        // into Blocks::buffers
    double opaque = 1;    // elements of the dimensions without axes
    double occupied = 1;  // for a buffer over a route's slots: the share in use
  };

  [[nodiscard]] BufferShare share_of(const std::string& buffer) const;
  [[nodiscard]] double chosen(const RouteChoice& choice) const;

  const Plan& plan_;
  const Blocks& blocks_;
  std::vector<BufferShare> shares_;  // per allocation
  // Per axis and block: elements of all blocks below it.
  std::vector<std::vector<std::int64_t>> up_to_;
};

}  // namespace harpe
