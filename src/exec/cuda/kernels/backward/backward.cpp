#include "exec/cuda/kernels/backward/backward.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <queue>
#include <string>
#include <vector>

#include "exec/cuda/kernels/backward/backward_variants.h"
#include "exec/cuda/kernels/spec_checks.h"

namespace harpe::cuda {

using device::BackwardConfig;
using device::BackwardGrid;
using device::Element;

namespace {

constexpr int kMostKeyParts = 8;  // the most parts of a key tile

// The sum of two row counts and a position fits in 32 bits.
constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max() / 4;

bool fits(const BackwardConfig& config, const BackwardSpec& spec) {
  return config.head_dim == spec.head_dim && config.element == spec.element;
}

Checked<Ok> check_heads(const BackwardSpec& spec) {
  const auto& configs = backward_configs();
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

Checked<Ok> check_tensors(const BackwardSpec& spec) {
  HP_REQUIRE_OK(check_aligned("q", spec.q, spec.element));
  HP_REQUIRE_OK(check_aligned("k", spec.k, spec.element));
  HP_REQUIRE_OK(check_aligned("v", spec.v, spec.element));
  HP_REQUIRE_OK(check_aligned("do", spec.d_o, spec.element));
  HP_REQUIRE_OK(check_aligned("dq", spec.dq.to, Element::F32));
  HP_REQUIRE_OK(check_aligned("dk", spec.dk.to, Element::F32));
  return check_aligned("dv", spec.dv.to, Element::F32);
}

device::RowNumbers numbers_of(const HeadTensor& tensor) {
  return {pointer_to<const float>(tensor.address), tensor.strides};
}

device::BackwardSums sums_of(const BackwardSumSpec& sums) {
  return {pointer_to<float>(sums.to.address), sums.to.strides, sums.carry};
}

BackwardGrid grid_of(const BackwardSpec& spec) {
  BackwardGrid grid{};
  grid.queries = static_cast<int>(spec.queries);
  grid.keys = static_cast<int>(spec.keys);
  grid.kv_heads = static_cast<int>(spec.kv_heads);
  grid.slices = static_cast<int>(spec.batch * spec.kv_heads);
  grid.heads_per_kv_head = static_cast<int>(spec.heads / spec.kv_heads);
  grid.key_tiles = device::ceil_div(grid.keys, device::kKeyTile);
  grid.query_tiles = device::ceil_div(grid.queries, device::kQueryTile);
  grid.head_parts = 1;
  grid.tile_parts = 1;
  grid.slices_per_group = 1;
  grid.band.low = static_cast<int>(std::clamp(spec.low, -spec.queries, spec.keys));
  grid.band.high = static_cast<int>(std::clamp(spec.high, -spec.queries, spec.keys));
  const auto steps = [&](int tile) {
    const device::TileRange met = met_queries(grid, tile);
    return met.end - met.begin;
  };
  grid.first_sees_most = steps(0) >= steps(grid.key_tiles - 1);
  return grid;
}

bool all_see_the_same(const BackwardGrid& grid) {
  const device::TileRange first = met_queries(grid, 0);
  for (int tile = 1; tile < grid.key_tiles; ++tile) {
    const device::TileRange met = met_queries(grid, tile);
    if (met.begin != first.begin || met.end != first.end) return false;
  }
  return true;
}

// Further time of a block, in steps: its start and its keys; and with parts, their turns at the
// same dk and dv.
constexpr int kStepsOfBlock = 4;
constexpr int kStepsOfTurn = 3;

// Time until the last block ends, in steps, if each block starts when another ends.
std::int64_t duration(const BackwardGrid& grid, int multiprocessors) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free;
  for (int i = 0; i < multiprocessors; ++i) free.push(0);
  const int besides = kStepsOfBlock + (grid.parts() - 1) * kStepsOfTurn;
  std::int64_t last = 0;
  for (int ticket = 0; ticket < backward_items(grid); ++ticket) {
    const device::BackwardItem item = backward_item(grid, ticket);
    const std::int64_t end =
        free.top() + backward_steps(grid, item.place, item.part).count() + besides;
    free.pop();
    free.push(end);
    last = std::max(last, end);
  }
  return last;
}

// Lets more blocks share a key tile if that ends sooner. It divides query tiles only if all key
// tiles meet the same ones; otherwise one block would wait for the end of another.
void share_keys(BackwardGrid& grid, int multiprocessors) {
  constexpr int kBlocksEach = 8;
  const bool same = all_see_the_same(grid);
  if (backward_items(grid) > kBlocksEach * multiprocessors) return;
  BackwardGrid best = grid;
  std::int64_t least = duration(grid, multiprocessors);
  for (grid.head_parts = 1; grid.head_parts <= kMostKeyParts; ++grid.head_parts) {
    if (grid.heads_per_kv_head % grid.head_parts != 0) continue;
    for (grid.tile_parts = 1; grid.parts() <= kMostKeyParts; grid.tile_parts *= 2) {
      if (grid.tile_parts > 1 && !same) continue;
      const std::int64_t took = duration(grid, multiprocessors);
      if (took >= least) continue;
      least = took;
      best = grid;
    }
  }
  grid = best;
}

// The slices that run together. Only a few key tiles of a slice should run at a time, since they
// wait for each other's turns, but more than one, since they read the same queries.
int slices_at_once(const BackwardGrid& grid, int multiprocessors) {
  constexpr int kTiles = 8;
  return std::clamp(multiprocessors / (kTiles * grid.parts()), 1, grid.slices);
}

}  // namespace

Checked<Ok> check(const BackwardSpec& spec) {
  HP_REQUIRE_OK(check_heads(spec));
  HP_REQUIRE_OK(check_count("queries", spec.queries, 1, kMostRows));
  HP_REQUIRE_OK(check_count("keys", spec.keys, 1, kMostRows));
  const std::int64_t tiles = (spec.keys + device::kKeyTile - 1) / device::kKeyTile;
  HP_REQUIRE_OK(check_count("blocks", spec.batch * spec.kv_heads * tiles * kMostKeyParts, 1,
                            std::numeric_limits<std::int32_t>::max()));
  const std::int64_t met = (spec.queries + device::kQueryTile - 1) / device::kQueryTile;
  HP_REQUIRE_OK(check_count("tiles of queries that share keys", met * (spec.heads / spec.kv_heads),
                            1, device::kMostBackwardSteps));
  HP_REQUIRE_OK(check_tensors(spec));
  if (spec.scale > 0 && std::isfinite(spec.scale)) return Ok{};
  return make_diag(DiagCode::G063, {{"scale", spec.scale}});
}

BackwardPlan plan_backward(const BackwardSpec& spec, int multiprocessors) {
  const auto& configs = backward_configs();
  const auto config =
      std::ranges::find_if(configs, [&](const auto& one) { return fits(one, spec); });
  HP_CHECK(config != configs.end(), "check() was not asked");
  BackwardPlan plan;
  plan.config = *config;
  device::BackwardArgs& args = plan.args;
  args.lse = numbers_of(spec.lse);
  args.delta = numbers_of(spec.delta);
  args.dk = sums_of(spec.dk);
  args.dv = sums_of(spec.dv);
  args.carry_dq = spec.dq.carry;
  args.grid = grid_of(spec);
  share_keys(args.grid, multiprocessors);
  args.grid.slices_per_group = slices_at_once(args.grid, multiprocessors);
  args.scale = static_cast<float>(spec.scale);
  args.scale_log2 = static_cast<float>(spec.scale * std::numbers::log2e);
  plan.blocks = backward_items(args.grid);
  plan.query_turns = spec.batch * spec.heads * args.grid.query_tiles;
  plan.key_turns = std::int64_t{args.grid.slices} * args.grid.key_tiles;
  const HeadSizes of_queries{
      .batch = spec.batch, .rows = spec.queries, .heads = spec.heads, .columns = spec.head_dim};
  const HeadSizes of_keys{
      .batch = spec.batch, .rows = spec.keys, .heads = spec.kv_heads, .columns = spec.head_dim};
  const auto map = [&](const HeadTensor& tensor, const HeadSizes& sizes) {
    return map_of_heads(tensor, sizes, spec.element, device::kQueryTile);
  };
  plan.maps = {map(spec.q, of_queries), map(spec.k, of_keys), map(spec.v, of_keys),
               map(spec.d_o, of_queries),
               map_of_heads(spec.dq.to, of_queries, Element::F32, device::kQueryTile)};
  return plan;
}

}  // namespace harpe::cuda
