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

std::optional<Box> intersect(const Box& a, const Box& b) {
  Box both = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both[i] = {.lo = std::max(a[i].lo, b[i].lo), .hi = std::min(a[i].hi, b[i].hi)};
    if (both[i].lo >= both[i].hi) return std::nullopt;
  }
  return both;
}

std::vector<int> PanelModel::followed(const AccessModel& access) const {
  const Radix& radix = model_.buffers[static_cast<std::size_t>(access.buffer)].radix;
  std::vector<int> digits;
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

void PanelModel::restrict(std::vector<Box>& iterations, const AccessModel& access,
                          const std::vector<Box>& blocks) const {
  const std::vector<int> digits = followed(access);
  std::vector<Box> left;
  for (const Box& box : blocks) {
    Box wanted = whole_box(space());
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      if (digits[j] >= 0) wanted[j] = box[static_cast<std::size_t>(digits[j])];
    }
    for (const Box& iteration : iterations) {
      if (std::optional<Box> both = intersect(iteration, wanted)) left.push_back(*both);
    }
  }
  remove_repeated(left);
  iterations = std::move(left);
}

std::vector<Box> PanelModel::iterations(const PlacedBlocks& stored,
                                        const std::vector<PlacedBlocks>& places) const {
  std::vector<Box> found = {whole_box(space())};
  for (const AccessModel& target : statement_.targets) {
    if (target.buffer == stored.buffer) restrict(found, target, stored.boxes);
  }
  for (const AccessModel& operand : statement_.operands) {
    std::vector<Box> blocks;
    bool is_placed = false;
    for (const PlacedBlocks& place : places) {
      if (place.buffer != operand.buffer) continue;
      is_placed = true;
      blocks.insert(blocks.end(), place.boxes.begin(), place.boxes.end());
    }
    if (is_placed) restrict(found, operand, blocks);
  }
  return found;
}

std::vector<Box> PanelModel::made_by(const std::vector<Box>& iterations, int target) const {
  return touched_by(iterations, statement_.targets[static_cast<std::size_t>(target)]);
}

std::vector<Box> PanelModel::touched_by(const std::vector<Box>& iterations,
                                        const AccessModel& access) const {
  const std::vector<int> digits = followed(access);
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
