#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/launch_plan.h"
#include "verify/model.h"
#include "verify/place_blocks.h"

namespace harpe::verifier {

// Blocks of one allocation.
struct PlacedBlocks {
  AllocId alloc;
  int buffer = 0;
  std::vector<Box> boxes = {};
};

// Derives what one panel does from its places: the blocks over which its statement runs.
class PanelModel {
 public:
  // Requires: both outlive this.
  PanelModel(const Model& model, const StatementModel& statement);

  // The iterations that produce a block of `stored`, a target, and that read operands only from
  // `places`, as far as these have blocks of the operand's buffer.
  [[nodiscard]] std::vector<Box> iterations(const PlacedBlocks& stored,
                                            const std::vector<PlacedBlocks>& places) const;
  // The blocks of a target that the iterations produce.
  [[nodiscard]] std::vector<Box> made_by(const std::vector<Box>& iterations, int target) const;
  // The blocks of an operand or a target that iterations touch.
  [[nodiscard]] std::vector<Box> touched_by(const std::vector<Box>& iterations,
                                            const AccessModel& access) const;

 private:
  using Digits = std::vector<int>;
  [[nodiscard]] Digits followed(const AccessModel& access) const;
  [[nodiscard]] std::vector<Box> touched_by(const std::vector<Box>& iterations,
                                            const AccessModel& access, const Digits& digits) const;
  [[nodiscard]] const Radix& space() const {
    return model_.nests[static_cast<std::size_t>(statement_.nest)].space;
  }
  static void restrict(std::vector<Box>& iterations, const Digits& digits,
                       const std::vector<Box>& blocks);

  const Model& model_;
  const StatementModel& statement_;
  // For each operand and target: per digit of the iteration space the buffer's digit that equals
  // it, or -1.
  std::vector<Digits> operand_digits_;
  std::vector<Digits> target_digits_;
};

// Removes repeated boxes.
void remove_repeated(std::vector<Box>& boxes);
[[nodiscard]] bool meet(const Box& a, const Box& b);

}  // namespace harpe::verifier
