#include "ir/interpret_attention_axes.h"

#include <algorithm>
#include <cmath>

#include "ir/mask_contract.h"

namespace harpe {
namespace {

bool holds(const AxisList& axes, const std::string& name) {
  return std::ranges::find(axes, name, &NamedTensor::Axis::name) != axes.end();
}

double scale_of(const LeafCall& call, std::int64_t head_dim) {
  for (const auto& [name, value] : call.stmt->attrs) {
    if (name != "scale") continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  }
  return 1.0 / std::sqrt(static_cast<double>(head_dim));
}

Checked<Ok> read_masks(const LeafCall& call, AttentionAxes& axes) {
  const std::int64_t offset = points_in(axes.key) - points_in(axes.query);
  for (const Mask& mask : call.stmt->masks) {
    const MaskCall rule = read_mask(mask);
    const std::string& kind = mask.call.function;
    const bool fits = !rule.contract->queries || holds(axes.query, rule.queries);
    if (!fits || !holds(axes.key, rule.keys)) {
      return misfit(call, call.operands[0],
                    "mask `" + kind + "` is not between its queries and its keys");
    }
    if (rule.contract->data) continue;
    axes.masked = true;
    axes.diagonal = offset;
    const std::int64_t keys = rule.number;
    if (kind == "window") axes.window = axes.window == 0 ? keys : std::min(axes.window, keys);
    if (kind == "prefix") axes.prefix = std::max(axes.prefix, keys);
  }
  return Ok{};
}

}  // namespace

std::vector<KeyRun> AttentionAxes::seen_by(std::int64_t query_position, std::int64_t keys) const {
  if (!masked) return {{0, keys}};
  const auto clamped = [&](std::int64_t at) { return std::clamp<std::int64_t>(at, 0, keys); };
  const std::int64_t own = query_position + diagonal;
  const KeyRun shown{0, clamped(prefix)};
  const KeyRun band{window == 0 ? 0 : clamped(own - window + 1), clamped(own + 1)};
  std::vector<KeyRun> runs;
  if (shown.begin < shown.end) runs.push_back(shown);
  if (band.begin >= band.end) return runs;
  if (!runs.empty() && band.begin <= runs.back().end) {
    runs.back().end = std::max(runs.back().end, band.end);
  } else {
    runs.push_back(band);
  }
  return runs;
}

Checked<Ok> check_axes(const LeafCall& call, const NamedTensor& tensor,
                       const std::vector<const AxisList*>& parts) {
  for (const NamedTensor::Axis& axis : tensor.axes()) {
    const auto fits = [&](const AxisList* part) {
      const auto same = std::ranges::find(*part, axis.name, &NamedTensor::Axis::name);
      return same != part->end() && same->size == axis.size;
    };
    if (std::ranges::none_of(parts, fits)) {
      return misfit(call, tensor, "axis `" + axis.name + "` plays no part there");
    }
  }
  return Ok{};
}

Checked<AttentionAxes> attention_axes(const LeafCall& call, const AttentionTensors& tensors) {
  const auto& [q, k, v, o] = tensors;
  for (const NamedTensor* tensor : {&q, &k, &v, &o}) {
    const bool of_keys = tensor == &k || tensor == &v;  // batch entries may share these
    const bool grouped = tensor->dims.size() == 3 && tensor->dims[1].size() == 2;
    const bool shared = tensor->dims.size() == 3 && tensor->dims[0].size() == 1;
    if (tensor->dims.size() == 4 || (of_keys ? shared : grouped)) continue;
    return misfit(call, *tensor,
                  "it has " + std::to_string(tensor->dims.size()) +
                      " dimensions, not batch, position, heads and features");
  }
  // With one query position, the heads of a group are the rows.
  AttentionAxes axes{.batch = {},
                     .query = q.dims.size() == 4 ? q.dims[1] : AxisList{q.dims[1].back()},
                     .key = k.dims[k.dims.size() - 3],
                     .head_dim = q.dims.back(),
                     .value_dim = v.dims.back()};
  for (const NamedTensor::Axis& axis : o.axes()) {
    if (!holds(axes.query, axis.name) && !holds(axes.value_dim, axis.name)) {
      axes.batch.push_back(axis);
    }
  }
  HP_REQUIRE_OK(check_axes(call, q, {&axes.batch, &axes.query, &axes.head_dim}));
  HP_REQUIRE_OK(check_axes(call, k, {&axes.batch, &axes.key, &axes.head_dim}));
  HP_REQUIRE_OK(check_axes(call, v, {&axes.batch, &axes.key, &axes.value_dim}));
  HP_REQUIRE_OK(check_axes(call, o, {&axes.batch, &axes.query, &axes.value_dim}));
  HP_REQUIRE_OK(read_masks(call, axes));
  axes.scale = scale_of(call, points_in(axes.head_dim));
  return axes;
}

}  // namespace harpe
