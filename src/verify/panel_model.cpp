#include "verify/panel_model.h"

#include <algorithm>

#include "verify/meaning.h"

namespace harpe::verifier {

void remove_repeated(std::vector<Box>& boxes) {
  const auto before = [](const Box& a, const Box& b) {
    return std::ranges::lexicographical_compare(a, b, [](const Range& x, const Range& y) {
      return std::pair(x.lo, x.hi) < std::pair(y.lo, y.hi);
    });
  };
  if (boxes.size() < 2) return;
  std::ranges::sort(boxes, before);
  const auto tail = std::ranges::unique(boxes);
  boxes.erase(tail.begin(), tail.end());
}

bool meet(const Box& a, const Box& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].lo >= b[i].hi || b[i].lo >= a[i].hi) return false;
  }
  return true;
}

PanelModel::PanelModel(const Model& model, const StatementModel& statement)
    : model_(model), statement_(statement) {
  for (const AccessModel& operand : statement.operands) {
    operand_digits_.push_back(followed(operand));
  }
  for (const AccessModel& target : statement.targets) target_digits_.push_back(followed(target));
}

PanelModel::Digits PanelModel::followed(const AccessModel& access) const {
  const Radix& radix = model_.buffers[static_cast<std::size_t>(access.buffer)].radix;
  Digits digits;
  for (std::size_t j = 0; j < access.strides.size(); ++j) {
    int found = -1;
    for (std::size_t i = 0; i < radix.extents.size(); ++i) {
      const bool varies = space().extents[j] > 1 && radix.extents[i] > 1;
      if (varies && radix.strides[i] == access.strides[j]) found = static_cast<int>(i);
    }
    digits.push_back(found);
  }
  return digits;
}

void PanelModel::restrict(std::vector<Box>& iterations, const Digits& digits,
                          const std::vector<Box>& blocks) {
  std::vector<Box> left;
  for (const Box& box : blocks) {
    for (const Box& iteration : iterations) {
      Box& both = left.emplace_back(iteration);
      bool is_any = true;
      for (std::size_t j = 0; is_any && j < both.size(); ++j) {
        if (digits[j] < 0) continue;
        const Range& wanted = box[static_cast<std::size_t>(digits[j])];
        both[j] = {.lo = std::max(both[j].lo, wanted.lo), .hi = std::min(both[j].hi, wanted.hi)};
        is_any = both[j].lo < both[j].hi;
      }
      if (!is_any) left.pop_back();
    }
  }
  remove_repeated(left);
  iterations = std::move(left);
}

std::vector<Box> PanelModel::iterations(const PlacedBlocks& stored,
                                        const std::vector<PlacedBlocks>& places) const {
  std::vector<Box> found = {whole_box(space())};
  for (std::size_t i = 0; i < statement_.targets.size(); ++i) {
    if (statement_.targets[i].buffer != stored.buffer) continue;
    restrict(found, target_digits_[i], stored.boxes);
  }
  for (std::size_t i = 0; i < statement_.operands.size(); ++i) {
    std::vector<Box> blocks;
    bool is_placed = false;
    for (const PlacedBlocks& place : places) {
      if (place.buffer != statement_.operands[i].buffer) continue;
      is_placed = true;
      blocks.insert(blocks.end(), place.boxes.begin(), place.boxes.end());
    }
    if (is_placed) restrict(found, operand_digits_[i], blocks);
  }
  return found;
}

std::vector<Box> PanelModel::made_by(const std::vector<Box>& iterations, int target) const {
  const auto at = static_cast<std::size_t>(target);
  return touched_by(iterations, statement_.targets[at], target_digits_[at]);
}

std::vector<Box> PanelModel::touched_by(const std::vector<Box>& iterations,
                                        const AccessModel& access) const {
  return touched_by(iterations, access, followed(access));
}

std::vector<Box> PanelModel::touched_by(const std::vector<Box>& iterations,
                                        const AccessModel& access, const Digits& digits) const {
  std::vector<Box> blocks;
  for (const Box& iteration : iterations) {
    Box& box = blocks.emplace_back(
        whole_box(model_.buffers[static_cast<std::size_t>(access.buffer)].radix));
    for (std::size_t j = 0; j < iteration.size(); ++j) {
      if (digits[j] >= 0) box[static_cast<std::size_t>(digits[j])] = iteration[j];
    }
  }
  remove_repeated(blocks);
  return blocks;
}

}  // namespace harpe::verifier
