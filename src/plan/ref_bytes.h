#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

// How much memory a task's refs name. What a route decides counts as when all experts are chosen
// alike.
class RefBytes {
 public:
  // Requires: `plan` and `blocks` outlive this, and the blocks are the plan's.
  RefBytes(const Plan& plan, const Blocks& blocks);

  // Of the elements a ref names, in the type of its allocation.
  [[nodiscard]] double of(const Ref& ref) const;

  // Elements along an axis that ranges of its digits select, one per digit.
  [[nodiscard]] std::int64_t length(int axis, std::span<const Range> ranges) const;

 private:
  struct BufferShare {
    int index = 0;        // into Blocks::buffers
    double opaque = 1;    // elements of the dimensions without axes
    double occupied = 1;  // of a buffer over a route's slots: the share that choices take
  };

  [[nodiscard]] BufferShare share_of(const std::string& buffer) const;
  [[nodiscard]] double chosen(const RouteChoice& choice) const;

  const Plan& plan_;
  const Blocks& blocks_;
  std::vector<BufferShare> shares_;               // per allocation
  std::vector<std::vector<std::int64_t>> up_to_;  // per axis: elements of blocks below, by block
};

}  // namespace harpe
