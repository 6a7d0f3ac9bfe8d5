#include "exec/cuda/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/plain/device/join_args.h"
#include "exec/cuda/kernels/spec_checks.h"

namespace harpe::cuda {

using device::AttentionArgs;
using device::AttentionConfig;
using device::Element;

namespace {

constexpr int kMapBoxRows = device::kRowsOfWarpgroup;

// With parts the attention kernel stores f32 states; the joining kernel stores the result.
bool leaves_state(const AttentionSpec& spec) { return spec.to_state || spec.parts > 1; }

bool fits(const AttentionConfig& config, const AttentionSpec& spec) {
  return config.query_dim == spec.query_dim && config.value_dim == spec.value_dim &&
         config.element == spec.element && config.carried == spec.carried &&
         (config.output == Element::F32) == leaves_state(spec);
}

Checked<Ok> check_panel(const AttentionSpec& spec, const AttentionPanelSpec& panel,
                        const std::string& name) {
  HP_REQUIRE_OK(check_aligned(name + ".queries", panel.queries, spec.element));
  HP_REQUIRE_OK(
      check_aligned(name + ".output", panel.output, spec.to_state ? Element::F32 : spec.element));
  if (spec.carried) {
    HP_REQUIRE_OK(check_aligned(name + ".carried_output", panel.carried_output, Element::F32));
  }
  if (spec.carried && panel.lse.address == 0) {
    return make_diag(DiagCode::G062,
                     {{"what", "carried lse"}, {"count", 0}, {"least", 1}, {"most", 1}});
  }
  return check_count("rows of a panel", panel.rows, 1,
                     std::numeric_limits<std::int32_t>::max() / 2);
}

Checked<Ok> check_chunk(const AttentionSpec& spec, const AttentionChunkSpec& chunk,
                        const std::string& name) {
  HP_REQUIRE_OK(check_aligned(name + ".keys", chunk.keys, spec.element));
  HP_REQUIRE_OK(check_aligned(name + ".values", chunk.values, spec.element));
  return check_count("rows of a chunk", chunk.rows, 1,
                     std::numeric_limits<std::int32_t>::max() / 2);
}

Checked<Ok> check_heads(const AttentionSpec& spec) {
  const auto& configs = attention_configs();
  if (spec.shares == 0 &&
      std::none_of(configs.begin(), configs.end(),
                   [&](const AttentionConfig& config) { return fits(config, spec); })) {
    return make_diag(DiagCode::G060,
                     {{"family", "attention"},
                      {"what", "heads of " + std::to_string(spec.query_dim) + " and values of " +
                                   std::to_string(spec.value_dim)}});
  }
  HP_REQUIRE_OK(check_count("batch entries", spec.batch, 1, 65535));
  HP_REQUIRE_OK(check_count("key heads", spec.kv_heads, 1, 65535));
  HP_REQUIRE_OK(check_count("heads", spec.heads, spec.kv_heads, 65535));
  if (spec.heads % spec.kv_heads == 0) return Ok{};
  const std::int64_t near = spec.heads / spec.kv_heads * spec.kv_heads;
  return make_diag(DiagCode::G062,
                   {{"what", "heads"}, {"count", spec.heads}, {"least", near}, {"most", near}});
}

device::AttentionPanel panel_of(const AttentionPanelSpec& panel) {
  return {.queries = {},
          .output = pointer_to<void>(panel.output.address),
          .lse = pointer_to<float>(panel.lse.address),
          .carried_output = pointer_to<const float>(panel.carried_output.address),
          .carried_lse = pointer_to<const float>(panel.carried_lse != 0 ? panel.carried_lse
                                                                        : panel.lse.address),
          .strides = panel.output.strides,
          .carried_strides = panel.carried_output.strides,
          .lse_strides = panel.lse.strides,
          .ready = panel.ready,
          .done = pointer_to<std::uint32_t>(panel.done),
          .rows = static_cast<int>(panel.rows),
          .position = static_cast<int>(panel.position)};
}

std::int64_t tiles_of(const AttentionPanelSpec& panel, const AttentionConfig& config) {
  return (panel.rows + query_rows(config) - 1) / query_rows(config);
}

std::int64_t kv_rows(const AttentionSpec& spec) {
  std::int64_t rows = 0;
  for (const AttentionChunkSpec& chunk : spec.chunks) rows += chunk.rows;
  return rows;
}

// Key rows that are loaded for those that exist: the last tile of each chunk is loaded whole.
double loaded_rows(const AttentionSpec& spec, int tile) {
  std::int64_t rows = 0;
  for (const AttentionChunkSpec& chunk : spec.chunks) {
    rows += (chunk.rows + tile - 1) / tile * tile;
  }
  return static_cast<double>(rows);
}

// Measured (kernel_times.md). Wide key tiles keep the tensor cores busier, but waste more where a
// mask cuts them, which matters little only with many keys. Heads of 64 gain from a third consumer
// warpgroup, which leaves registers for 112 columns.
int best_kv_tile(const AttentionSpec& spec) {
  if (spec.query_dim == 64) {
    constexpr std::int64_t kFewRows = 4096;
    constexpr double kGain = 0.87;
    const bool gains = kGain * loaded_rows(spec, 112) < loaded_rows(spec, 128);
    return kv_rows(spec) >= kFewRows && gains ? 112 : 128;
  }
  constexpr std::int64_t kManyRows = 16384;
  constexpr double kGain = 0.985;
  const bool is_cut = spec.causal || spec.window > 0;
  const bool gains = kGain * loaded_rows(spec, 160) < loaded_rows(spec, 128);
  const bool is_wide = spec.query_dim == 128 && (!is_cut || kv_rows(spec) >= kManyRows);
  return is_wide && gains ? 160 : 128;
}

int slices_per_group(const AttentionSpec& spec) {
  const std::int64_t bytes = kv_rows(spec) * (spec.query_dim + spec.value_dim) * 2;
  const std::int64_t together = std::max<std::int64_t>(1, kAttentionCacheBytes / bytes);
  const std::int64_t slices = together * (spec.heads / spec.kv_heads);
  return static_cast<int>(std::min(slices, spec.batch * spec.parts * spec.heads));
}

// Whether batch entries follow each other directly: then all parts of keys are equally far apart.
bool is_even(const AttentionSpec& spec, const HeadTensor& tensor) {
  return spec.batch == 1 || tensor.strides.batch == spec.chunks.front().rows * tensor.strides.row;
}

bool may_have_parts(const AttentionSpec& spec) {
  if (spec.panels.size() != 1 || spec.chunks.size() != 1) return false;
  const AttentionPanelSpec& panel = spec.panels.front();
  const AttentionChunkSpec& chunk = spec.chunks.front();
  const bool waits = panel.ready.flag != nullptr || chunk.ready.flag != nullptr;
  return !spec.carried && !spec.causal && spec.window == 0 && !waits && panel.done == 0 &&
         spec.copies.empty() && is_even(spec, chunk.keys) && is_even(spec, chunk.values);
}

// The tensor with parts of `rows` rows as its batch entries.
HeadTensor part_of(HeadTensor tensor, const AttentionSpec& spec, std::int64_t rows) {
  if (spec.parts > 1) tensor.strides.batch = rows * tensor.strides.row;
  return tensor;
}

Checked<Ok> check_parts(const AttentionSpec& spec) {
  const bool may = may_have_parts(spec) && spec.chunks.front().rows % std::max(1, spec.parts) == 0;
  return check_count("parts of the keys", spec.parts, 1, may ? device::kMostParts : 1);
}

}  // namespace

double scale_of(const AttentionSpec& spec) {
  return spec.scale != 0 ? spec.scale : 1 / std::sqrt(static_cast<double>(spec.query_dim));
}

Checked<Ok> check(const AttentionSpec& spec, int blocks) {
  HP_REQUIRE_OK(check_shares(spec, blocks));
  HP_REQUIRE_OK(check_heads(spec));
  HP_REQUIRE_OK(check_parts(spec));
  HP_REQUIRE_OK(check_count("panels", static_cast<std::int64_t>(spec.panels.size()), 1,
                            device::kMaxAttentionPanels));
  HP_REQUIRE_OK(check_count("chunks", static_cast<std::int64_t>(spec.chunks.size()), 1,
                            device::kMaxAttentionChunks));
  HP_REQUIRE_OK(check_count("copying blocks", spec.copy_blocks, 0, blocks - 1));
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    HP_REQUIRE_OK(check_panel(spec, spec.panels[i], "panels[" + std::to_string(i) + "]"));
  }
  for (std::size_t i = 0; i < spec.chunks.size(); ++i) {
    HP_REQUIRE_OK(check_chunk(spec, spec.chunks[i], "chunks[" + std::to_string(i) + "]"));
  }
  const double scale = scale_of(spec);
  if (!(scale > 0) || !std::isfinite(scale)) return make_diag(DiagCode::G063, {{"scale", scale}});
  return Ok{};
}

int choose_parts(const AttentionSpec& spec, int blocks) {
  constexpr std::int64_t kLeastKeys = 256;
  constexpr std::int64_t kFewQueries = 64;  // rows of one consumer warpgroup
  if (!may_have_parts(spec) || spec.panels.front().rows > kFewQueries) return 1;
  const std::int64_t keys = spec.chunks.front().rows;
  const std::int64_t wanted = std::min<std::int64_t>(
      {blocks / (spec.batch * spec.heads), keys / kLeastKeys, device::kMostParts});
  std::int64_t parts = std::max<std::int64_t>(1, wanted);
  while (keys % parts != 0) --parts;
  return static_cast<int>(parts);
}

AttentionSpec with_groups_as_rows(AttentionSpec spec) {
  const std::int64_t group = spec.heads / spec.kv_heads;
  const bool sees_all = !spec.causal && spec.window == 0 && !spec.rule;
  const auto has_one = [](const AttentionPanelSpec& panel) { return panel.rows == 1; };
  if (group == 1 || !sees_all || !std::ranges::all_of(spec.panels, has_one)) return spec;
  for (AttentionPanelSpec& panel : spec.panels) {
    for (HeadTensor* const tensor :
         {&panel.queries, &panel.output, &panel.lse, &panel.carried_output}) {
      tensor->strides.row = tensor->strides.head;
      tensor->strides.head *= group;
    }
    panel.rows = group;
  }
  spec.heads = spec.kv_heads;
  return spec;
}

AttentionConfig choose_attention(const AttentionSpec& spec) {
  const int columns = best_kv_tile(spec);
  const AttentionConfig* best = nullptr;
  for (const AttentionConfig& config : attention_configs()) {
    if (!fits(config, spec)) continue;
    if (best == nullptr || config.kv_tile == columns) best = &config;
  }
  HP_CHECK(best != nullptr, "check() was not asked");
  return *best;
}

AttentionPlan plan_attention(const AttentionSpec& spec, const AttentionConfig& config, int blocks) {
  HP_CHECK(fits(config, spec), "the kernel is for other heads or another output");
  AttentionPlan plan;
  plan.config = config;
  AttentionArgs& args = plan.args;
  for (const AttentionPanelSpec& panel : spec.panels) {
    args.panels[args.panel_count++] = panel_of(panel);
    args.tiles += static_cast<int>(tiles_of(panel, config));
    plan.maps.push_back(map_of_heads(
        panel.queries,
        {.batch = spec.batch, .rows = panel.rows, .heads = spec.heads, .columns = spec.query_dim},
        spec.element, kMapBoxRows));
  }
  for (const AttentionChunkSpec& chunk : spec.chunks) {
    const int at = args.chunk_count++;
    args.extents[at] = {static_cast<int>(chunk.rows / spec.parts),
                        static_cast<int>(chunk.position)};
    args.chunks[at].ready = chunk.ready;
    HeadSizes sizes{.batch = spec.batch * spec.parts,
                    .rows = chunk.rows / spec.parts,
                    .heads = spec.kv_heads,
                    .columns = spec.query_dim};
    plan.maps.push_back(
        map_of_heads(part_of(chunk.keys, spec, sizes.rows), sizes, spec.element, config.kv_tile));
    sizes.columns = spec.value_dim;
    plan.maps.push_back(
        map_of_heads(part_of(chunk.values, spec, sizes.rows), sizes, spec.element, config.kv_tile));
  }
  const double scale_log2 = scale_of(spec) * std::numbers::log2e;
  args.wait = spec.wait;
  args.copy_count = static_cast<int>(spec.copies.size());
  args.copy_blocks = spec.copy_blocks;
  args.mask = {spec.causal, static_cast<int>(spec.window)};
  args.heads = static_cast<int>(spec.heads);
  args.heads_per_kv_head = static_cast<int>(spec.heads / spec.kv_heads);
  args.parts = spec.parts;
  args.slices = static_cast<int>(spec.batch * spec.parts * spec.heads);
  args.slices_per_group = slices_per_group(spec);
  args.scale_log2 = static_cast<float>(scale_log2);
  args.slack = static_cast<float>(kSlackLog2 / scale_log2);
  const int working = std::min(blocks - spec.copy_blocks, args.tiles * args.slices);
  plan.blocks = spec.copy_blocks + working;
  return plan;
}

device::TensorMap& map_of(AttentionArgs& args, std::size_t index) {
  const auto panels = static_cast<std::size_t>(args.panel_count);
  if (index < panels) return args.panels[index].queries;
  device::AttentionChunk& chunk = args.chunks[(index - panels) / 2];
  return (index - panels) % 2 == 0 ? chunk.keys : chunk.values;
}

std::uint32_t arrivals(const AttentionSpec& spec, const AttentionPanelSpec& panel,
                       const AttentionConfig& config) {
  return static_cast<std::uint32_t>(tiles_of(panel, config) * spec.batch * spec.heads *
                                    config.consumers);
}

}  // namespace harpe::cuda
