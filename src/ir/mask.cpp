#include "ir/mask.h"

namespace harpe {

ResolvedMask resolve_mask(const Blocks& blocks, const Mask& mask) {
  HP_CHECK(mask.call.function == "causal" && mask.call.args.size() == 2,
           "mask `" + mask.call.function + "` passed check_program");
  const auto axis = [&](std::size_t i) {
    const auto* name = std::get_if<Name>(&mask.call.args[i]);
    const int found = name == nullptr ? -1 : blocks.find_axis(name->text);
    HP_CHECK(found >= 0, "an axis of mask `" + mask.call.function + "`");
    return found;
  };
  ResolvedMask resolved{.query_axis = axis(0), .key_axis = axis(1), .diagonal = 0};
  const auto size = [&](int a) { return blocks.axes()[static_cast<std::size_t>(a)].size; };
  resolved.diagonal = size(resolved.key_axis) - size(resolved.query_axis);
  return resolved;
}

Coverage classify(const ResolvedMask& mask, Interval queries, Interval keys) {
  if (queries.size() <= 0 || keys.size() <= 0) return Coverage::Empty;
  if (keys.begin > queries.end - 1 + mask.diagonal) return Coverage::Empty;
  if (keys.end - 1 <= queries.begin + mask.diagonal) return Coverage::Full;
  return Coverage::Partial;
}

}  // namespace harpe
