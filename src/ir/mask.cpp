#include "ir/mask.h"

#include <algorithm>

namespace harpe {
namespace {

int axis_of(const Blocks& blocks, const Mask& mask, std::size_t argument) {
  const auto* name = std::get_if<Name>(&mask.call.args.at(argument));
  const int found = name == nullptr ? -1 : blocks.find_axis(name->text);
  HP_CHECK(found >= 0, "an axis of mask `" + mask.call.function + "`");
  return found;
}

}  // namespace

std::optional<ResolvedMask> resolve_masks(const Blocks& blocks, const Stmt& stmt) {
  if (stmt.masks.empty()) return std::nullopt;
  ResolvedMask resolved{.query_axis = axis_of(blocks, stmt.masks.front(), 0),
                        .key_axis = axis_of(blocks, stmt.masks.front(), 1),
                        .visible = {}};
  const auto size = [&](int axis) { return blocks.axes()[static_cast<std::size_t>(axis)].size; };
  const std::int64_t diagonal = size(resolved.key_axis) - size(resolved.query_axis);
  Visibility& visible = resolved.visible;
  for (const Mask& mask : stmt.masks) {
    const std::string& function = mask.call.function;
    if (function == "prefix") {
      visible.prefix = std::max(visible.prefix, std::get<std::int64_t>(mask.call.args.at(2)));
      continue;
    }
    HP_CHECK(function == "causal" || function == "window",
             "mask `" + function + "` passed check_program");
    visible.high = diagonal;
    if (function == "causal") continue;
    const std::int64_t keys = std::get<std::int64_t>(mask.call.args.at(2));
    visible.low = std::max(visible.low, diagonal - keys + 1);
  }
  return resolved;
}

// In a rectangle the differences k - q are all those between its two corners.
Coverage classify(const Visibility& visible, Interval queries, Interval keys) {
  if (queries.size() <= 0 || keys.size() <= 0) return Coverage::Empty;
  const std::int64_t first = std::max(keys.begin, visible.prefix);  // not seen by all as prefix
  const std::int64_t least = first - (queries.end - 1);
  const std::int64_t most = keys.end - 1 - queries.begin;
  if (first >= keys.end || (visible.low <= least && most <= visible.high)) return Coverage::Full;
  const bool apart = most < visible.low || visible.high < least;
  return apart && first == keys.begin ? Coverage::Empty : Coverage::Partial;
}

}  // namespace harpe
