#include "verify/place_blocks.h"

#include <algorithm>
#include <iterator>

namespace harpe::verifier {
namespace {

std::vector<std::int32_t> digits_of(const Model& model, const AxisModel& axis, std::int64_t block) {
  std::vector<std::int32_t> point(axis.digits.size());
  for (std::size_t i = point.size(); i-- > 0;) {
    const std::int32_t extent = model.digits[static_cast<std::size_t>(axis.digits[i])].extent;
    point[i] = static_cast<std::int32_t>(block % extent);
    block /= extent;
  }
  return point;
}

// Merges ascending points into few boxes: neighbours along the last digit become one box.
std::vector<Box> join_neighbours(const std::vector<std::vector<std::int32_t>>& points) {
  std::vector<Box> boxes;
  for (const std::vector<std::int32_t>& point : points) {
    const auto continues = [&] {
      if (boxes.empty() || point.empty() || boxes.back().back().hi != point.back()) return false;
      for (std::size_t i = 0; i + 1 < point.size(); ++i) {
        if (boxes.back()[i].lo != point[i]) return false;
      }
      return true;
    };
    if (continues()) {
      ++boxes.back().back().hi;
      continue;
    }
    Box& box = boxes.emplace_back();
    for (const std::int32_t value : point) box.push_back({.lo = value, .hi = value + 1});
  }
  return boxes;
}

Box bounds_of(const std::vector<std::vector<std::int32_t>>& points) {
  Box box;
  for (const std::int32_t value : points.front()) box.push_back({.lo = value, .hi = value + 1});
  for (const std::vector<std::int32_t>& point : points) {
    for (std::size_t i = 0; i < point.size(); ++i) {
      box[i].lo = std::min(box[i].lo, point[i]);
      box[i].hi = std::max(box[i].hi, point[i] + 1);
    }
  }
  return box;
}

}  // namespace

const std::optional<std::vector<Box>>& PlaceBlocks::along(int axis, const Interval& part) {
  const auto [known, fresh] = known_.try_emplace({axis, part.begin, part.end});
  if (!fresh) return known->second;
  const AxisModel& model = model_.axes[static_cast<std::size_t>(axis)];
  std::vector<std::vector<std::int32_t>> points;
  std::int64_t covered = 0;
  for (std::int64_t block = 0; block < model.blocks; ++block) {
    const std::int64_t begin = model.begin[static_cast<std::size_t>(block)];
    const std::int64_t end = model.end[static_cast<std::size_t>(block)];
    if (begin == end || end <= part.begin || begin >= part.end) continue;
    if (begin < part.begin || end > part.end) return known->second;
    covered += end - begin;
    points.push_back(digits_of(model_, model, block));
  }
  if (covered != part.size() || points.empty()) return known->second;
  const Box bounds = bounds_of(points);
  std::size_t volume = 1;
  for (const Range& range : bounds) volume *= static_cast<std::size_t>(range.hi - range.lo);
  known->second = volume == points.size() ? std::vector<Box>(1, bounds) : join_neighbours(points);
  return known->second;
}

std::optional<std::vector<Box>> PlaceBlocks::find(int buffer, const std::vector<Interval>& span) {
  const BufferModel& model = model_.buffers[static_cast<std::size_t>(buffer)];
  const std::size_t axes = model.axes.size();
  if (span.size() < axes) return std::nullopt;
  std::int64_t opaque = 1;  // dimensions without blocks cannot be cut
  for (std::size_t i = axes; i < span.size(); ++i) {
    if (span[i].begin != 0) return std::nullopt;
    opaque *= span[i].size();
  }
  if (opaque != model.opaque) return std::nullopt;
  std::vector<Box> boxes(1);
  boxes.front().reserve(model.radix.digits.size());
  for (std::size_t i = 0; i < axes; ++i) {
    const std::optional<std::vector<Box>>& parts = along(model.axes[i].axis, span[i]);
    if (!parts) return std::nullopt;
    std::vector<Box> further;  // of all parts but the first
    for (std::size_t at = 1; at < parts->size(); ++at) {
      for (const Box& box : boxes) {
        further.push_back(box);
        further.back().insert(further.back().end(), (*parts)[at].begin(), (*parts)[at].end());
      }
    }
    for (Box& box : boxes) box.insert(box.end(), parts->front().begin(), parts->front().end());
    std::ranges::move(further, std::back_inserter(boxes));
  }
  return boxes;
}

}  // namespace harpe::verifier
