#include "ir/mask.h"

#include <algorithm>

#include "ir/mask_contract.h"
#include "support/units.h"

namespace harpe {
namespace {

int axis_of(const Blocks& blocks, const std::string& name) {
  const int found = blocks.find_axis(name);
  HP_CHECK(found >= 0, "axis `" + name + "` of a mask");
  return found;
}

// Masks on data have no rule of positions.
bool goes_by_data(const Mask& mask) { return read_mask(mask).contract->data; }

}  // namespace

std::optional<ResolvedMask> resolve_masks(const Blocks& blocks, const Stmt& stmt) {
  const auto first = std::ranges::find_if_not(stmt.masks, goes_by_data);
  if (first == stmt.masks.end()) return std::nullopt;
  ResolvedMask resolved{.query_axis = axis_of(blocks, read_mask(*first).queries),
                        .key_axis = axis_of(blocks, read_mask(*first).keys),
                        .visible = {}};
  const auto size = [&](int axis) { return blocks.axes()[static_cast<std::size_t>(axis)].size; };
  const std::int64_t diagonal = size(resolved.key_axis) - size(resolved.query_axis);
  Visibility& visible = resolved.visible;
  for (const Mask& mask : stmt.masks) {
    const MaskCall call = read_mask(mask);
    if (call.contract->data) continue;
    if (call.contract->kind == MaskKind::Prefix) {
      visible.prefix = std::max(visible.prefix, call.number);
      continue;
    }
    visible.high = diagonal;
    if (call.contract->kind == MaskKind::Causal) continue;
    HP_CHECK(call.contract->kind == MaskKind::Window, "a rule for `" + mask.call.function + "`");
    // A window may be longer than any axis.
    visible.low = std::max(visible.low, saturating_add(diagonal, 1 - call.number));
  }
  return resolved;
}

// In a rectangle, k - q takes all values between those of its two corners.
Coverage classify(const Visibility& visible, Interval queries, Interval keys) {
  if (queries.size() <= 0 || keys.size() <= 0) return Coverage::Empty;
  const std::int64_t first = std::max(keys.begin, visible.prefix);  // keys outside the prefix
  const std::int64_t least = first - (queries.end - 1);
  const std::int64_t most = keys.end - 1 - queries.begin;
  if (first >= keys.end || (visible.low <= least && most <= visible.high)) return Coverage::Full;
  const bool apart = most < visible.low || visible.high < least;
  return apart && first == keys.begin ? Coverage::Empty : Coverage::Partial;
}

}  // namespace harpe
