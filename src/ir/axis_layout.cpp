#include "ir/axis_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/mask.h"

namespace harpe {
namespace {

std::vector<Interval> join_neighbours(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  std::vector<Interval> out;
  for (const Interval& each : intervals) {
    if (each.size() == 0) continue;
    if (!out.empty() && out.back().end == each.begin) {
      out.back().end = each.end;
    } else {
      out.push_back(each);
    }
  }
  return out;
}

// The distinct parts of an axis that ranks hold, ordered by the first rank that holds each.
using Parts = std::vector<std::vector<Interval>>;

Parts parts_of(const Blocks& blocks, int buffer, int axis, std::size_t first_digit) {
  const std::size_t digits = blocks.axes()[static_cast<std::size_t>(axis)].digits.size();
  std::set<Region> seen;
  Parts parts;
  for (std::int64_t rank = 0; rank < blocks.ranks(); ++rank) {
    const Region home = blocks.home(buffer, RankId(rank));
    const auto begin = home.begin() + static_cast<std::ptrdiff_t>(first_digit);
    const Region values(begin, begin + static_cast<std::ptrdiff_t>(digits));
    if (seen.insert(values).second) parts.push_back(positions_in(blocks, axis, values));
  }
  return parts;
}

bool is_contiguous(const Parts& parts) {
  std::int64_t end = 0;
  for (const std::vector<Interval>& part : parts) {
    if (part.empty()) continue;
    if (part.size() > 1 || part.front().begin != end) return false;
    end = part.front().end;
  }
  return true;
}

// Part i of P holds blocks i and 2P-1-i of the axis cut into 2P blocks.
bool is_zigzag(const AxisTable& table, const Parts& parts) {
  const std::int64_t halves = 2 * std::ssize(parts);
  if (table.blocks % halves != 0) return false;
  const auto block = [&](std::int64_t index) {
    const auto begin = static_cast<std::size_t>(index * (table.blocks / halves));
    const auto end = static_cast<std::size_t>((index + 1) * (table.blocks / halves));
    return Interval{table.starts[begin], table.starts[end]};
  };
  for (std::int64_t i = 0; i < std::ssize(parts); ++i) {
    const auto wanted = join_neighbours({block(i), block(halves - 1 - i)});
    if (parts[static_cast<std::size_t>(i)] != wanted) return false;
  }
  return true;
}

AxisLayout classify_parts(const AxisTable& table, const Parts& parts) {
  if (parts.size() == 1) return AxisLayout::Whole;
  if (is_contiguous(parts)) return AxisLayout::Contiguous;
  return is_zigzag(table, parts) ? AxisLayout::Zigzag : AxisLayout::Other;
}

std::set<int> find_masked_axes(const Program& program, const Blocks& blocks) {
  std::set<int> axes;
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      const auto mask = resolve_masks(blocks, stmt);
      if (mask) axes.insert({mask->query_axis, mask->key_axis});
    }
  }
  return axes;
}

}  // namespace

std::string_view print(AxisLayout layout) {
  switch (layout) {
    case AxisLayout::Whole:
      return "whole";
    case AxisLayout::Contiguous:
      return "contiguous";
    case AxisLayout::Zigzag:
      return "zigzag";
    case AxisLayout::Other:
      return "other";
  }
  return "";
}

std::vector<Interval> positions_in(const Blocks& blocks, int axis,
                                   std::span<const std::int32_t> values) {
  const AxisTable& table = blocks.axes()[static_cast<std::size_t>(axis)];
  std::vector<Interval> intervals;
  const Region region(values.begin(), values.end());
  for (const BlockId block : blocks.blocks_in(table.digits, region)) {
    intervals.push_back(blocks.interval(axis, block));
  }
  return join_neighbours(std::move(intervals));
}

std::vector<HeldAxis> find_held_axes(const Program& program, const Blocks& blocks) {
  std::map<int, AxisLayout> layouts;
  for (std::size_t index = 0; index < blocks.buffers().size(); ++index) {
    const BufferTable& buffer = blocks.buffers()[index];
    if (buffer.role == Role::Temp) continue;
    std::size_t digit = 0;  // a buffer's digits are those of its axes, axis by axis
    for (const int axis : buffer.axes) {
      const AxisTable& table = blocks.axes()[static_cast<std::size_t>(axis)];
      const AxisLayout own =
          classify_parts(table, parts_of(blocks, static_cast<int>(index), axis, digit));
      AxisLayout& known = layouts.try_emplace(axis, own).first->second;
      if (known == AxisLayout::Whole) known = own;
      if (own != AxisLayout::Whole && own != known) known = AxisLayout::Other;
      digit += table.digits.size();
    }
  }
  const std::set<int> masked = find_masked_axes(program, blocks);
  std::vector<HeldAxis> held;
  for (const auto& [axis, layout] : layouts) {
    held.push_back({.axis = blocks.axes()[static_cast<std::size_t>(axis)].name,
                    .layout = layout,
                    .is_masked = masked.contains(axis)});
  }
  return held;
}

}  // namespace harpe
