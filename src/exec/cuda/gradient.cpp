#include "exec/cuda/gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "exec/cuda/attention.h"
#include "exec/cuda/gradient_variants.h"
#include "exec/cuda/spec_checks.h"

namespace harpe::cuda {

using device::Element;
using device::GradientConfig;
using device::GradientRows;

namespace {

constexpr int kMostParts = 4;  // of a tile of keys

// Sums of two and of a position stay in 32 bits.
constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max() / 4;

bool fits(const GradientConfig& config, const GradientSpec& spec) {
  return config.head_dim == spec.head_dim && config.element == spec.element;
}

Checked<Ok> check_heads(const GradientSpec& spec) {
  const auto& configs = gradient_configs();
  if (std::ranges::none_of(configs, [&](const auto& config) { return fits(config, spec); })) {
    return make_diag(DiagCode::G060, {{"family", "gradient"},
                                      {"what", "heads of " + std::to_string(spec.head_dim)}});
  }
  HP_REQUIRE_OK(check_count("batch entries", spec.batch, 1, 65535));
  HP_REQUIRE_OK(check_count("key heads", spec.kv_heads, 1, 65535));
  HP_REQUIRE_OK(check_count("heads", spec.heads, spec.kv_heads, 65535));
  if (spec.heads % spec.kv_heads == 0) return Ok{};
  const std::int64_t near = spec.heads / spec.kv_heads * spec.kv_heads;
  return make_diag(DiagCode::G062,
                   {{"what", "heads"}, {"count", spec.heads}, {"least", near}, {"most", near}});
}

Checked<Ok> check_tensors(const GradientSpec& spec) {
  HP_REQUIRE_OK(check_aligned("q", spec.q, spec.element));
  HP_REQUIRE_OK(check_aligned("k", spec.k, spec.element));
  HP_REQUIRE_OK(check_aligned("v", spec.v, spec.element));
  HP_REQUIRE_OK(check_aligned("do", spec.d_o, spec.element));
  HP_REQUIRE_OK(check_aligned("dq", spec.dq.to, Element::F32));
  HP_REQUIRE_OK(check_aligned("dk", spec.dk.to, Element::F32));
  return check_aligned("dv", spec.dv.to, Element::F32);
}

std::int64_t blocks_of(const GradientSpec& spec, int parts) {
  const auto tiles = [](std::int64_t rows) {
    return (rows + device::kGradientRows - 1) / device::kGradientRows;
  };
  return spec.batch * (tiles(spec.keys) * spec.kv_heads * parts + tiles(spec.queries) * spec.heads);
}

device::RowNumbers numbers_of(const HeadTensor& tensor) {
  return {pointer_to<const float>(tensor.address), tensor.strides};
}

device::GradientSums sums_of(const GradientSumSpec& sums) {
  return {pointer_to<float>(sums.to.address), sums.to.strides, sums.carry};
}

GradientRows rows_of(const GradientSpec& spec, device::GradientSide side) {
  const bool of_keys = side == device::GradientSide::Keys;
  const std::int64_t group = spec.heads / spec.kv_heads;
  const std::int64_t low = std::clamp(spec.low, -spec.queries, spec.keys);
  const std::int64_t high = std::clamp(spec.high, -spec.queries, spec.keys);
  GradientRows rows{};
  rows.rows = static_cast<int>(of_keys ? spec.keys : spec.queries);
  rows.columns = static_cast<int>(of_keys ? spec.queries : spec.keys);
  rows.heads = static_cast<int>(of_keys ? spec.kv_heads : spec.heads);
  rows.slices = static_cast<int>(spec.batch) * rows.heads;
  rows.tiles = device::ceil_div(rows.rows, device::kGradientRows);
  rows.band.low = static_cast<int>(of_keys ? -high : low);
  rows.band.high = static_cast<int>(of_keys ? -low : high);
  // The columns of a key head are those of all its query heads; those of a query head it shares.
  const std::int64_t bytes = std::int64_t{2} * rows.columns * spec.head_dim *
                             device::bytes_of(spec.element) * (of_keys ? group : 1);
  const std::int64_t together = std::max<std::int64_t>(1, kAttentionCacheBytes / bytes);
  rows.slices_per_group =
      static_cast<int>(std::min<std::int64_t>(together * (of_keys ? 1 : group), rows.slices));
  const auto seen = [&](int first) {
    const device::ColumnRange range = seen_columns(rows, first, device::kGradientRows);
    return range.end - range.begin;
  };
  rows.first_sees_most = seen(0) >= seen((rows.tiles - 1) * device::kGradientRows);
  return rows;
}

// What a step of a block costs: the columns of its products.
constexpr std::int64_t kKeyStep = std::int64_t{4} * column_tile(device::GradientSide::Keys);
constexpr std::int64_t kQueryStep = std::int64_t{3} * column_tile(device::GradientSide::Queries);

struct GradientCost {
  std::int64_t longest = 0;  // of a block
  std::int64_t all = 0;
};

GradientCost cost_of(const GradientRows& side, int tile, std::int64_t step) {
  GradientCost cost;
  for (int at = 0; at < side.tiles; ++at) {
    const auto seen = seen_columns(side, at * device::kGradientRows, device::kGradientRows);
    const std::int64_t one = step * device::ceil_div(seen.end - seen.begin, tile);
    cost.longest = std::max(cost.longest, one);
    cost.all += one * side.slices;
  }
  return cost;
}

// Blocks that share a tile of keys: so many that none of them outlasts all the others, who have
// that and the queries to do.
int key_parts(const device::GradientArgs& args, int multiprocessors) {
  const GradientCost keys = cost_of(args.keys, column_tile(device::GradientSide::Keys),
                                    kKeyStep * args.heads_per_kv_head);
  const GradientCost queries =
      cost_of(args.queries, column_tile(device::GradientSide::Queries), kQueryStep);
  const std::int64_t even = (keys.all + queries.all) / multiprocessors;
  int parts = 1;
  // To share costs more than it gains where a block outlasts the others by less (docs/kernels.md).
  if (keys.longest <= 2 * even) return parts;
  while (parts < kMostParts && keys.longest / parts > even) parts *= 2;
  return parts;
}

}  // namespace

Checked<Ok> check(const GradientSpec& spec) {
  HP_REQUIRE_OK(check_heads(spec));
  HP_REQUIRE_OK(check_count("queries", spec.queries, 1, kMostRows));
  HP_REQUIRE_OK(check_count("keys", spec.keys, 1, kMostRows));
  HP_REQUIRE_OK(check_count("blocks", blocks_of(spec, kMostParts), 1,
                            std::numeric_limits<std::int32_t>::max()));
  HP_REQUIRE_OK(check_tensors(spec));
  if (spec.scale > 0 && std::isfinite(spec.scale)) return Ok{};
  return make_diag(DiagCode::G063, {{"scale", spec.scale}});
}

GradientPlan plan_gradient(const GradientSpec& spec, int multiprocessors) {
  const auto& configs = gradient_configs();
  const auto config =
      std::ranges::find_if(configs, [&](const auto& one) { return fits(one, spec); });
  HP_CHECK(config != configs.end(), "check() was not asked");
  GradientPlan plan;
  plan.config = *config;
  device::GradientArgs& args = plan.args;
  args.lse = numbers_of(spec.lse);
  args.delta = numbers_of(spec.delta);
  args.dq = sums_of(spec.dq);
  args.dk = sums_of(spec.dk);
  args.dv = sums_of(spec.dv);
  args.keys = rows_of(spec, device::GradientSide::Keys);
  args.queries = rows_of(spec, device::GradientSide::Queries);
  args.heads_per_kv_head = static_cast<int>(spec.heads / spec.kv_heads);
  args.scale = static_cast<float>(spec.scale);
  args.scale_log2 = static_cast<float>(spec.scale * std::numbers::log2e);
  args.key_parts = key_parts(args, multiprocessors);
  const int blocks = static_cast<int>(blocks_of(spec, args.key_parts));
  plan.blocks = device::ceil_div(blocks, args.key_parts) * args.key_parts;
  const HeadSizes of_queries{
      .batch = spec.batch, .rows = spec.queries, .heads = spec.heads, .columns = spec.head_dim};
  const HeadSizes of_keys{
      .batch = spec.batch, .rows = spec.keys, .heads = spec.kv_heads, .columns = spec.head_dim};
  const auto map = [&](const HeadTensor& tensor, const HeadSizes& sizes) {
    return map_of_heads(tensor, sizes, spec.element, device::kGradientBoxRows);
  };
  plan.maps = {map(spec.q, of_queries), map(spec.k, of_keys), map(spec.v, of_keys),
               map(spec.d_o, of_queries)};
  return plan;
}

}  // namespace harpe::cuda
