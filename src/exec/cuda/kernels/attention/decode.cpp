#include "exec/cuda/kernels/attention/decode.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>
#include <numeric>
#include <tuple>

#include "exec/cuda/kernels/spec_checks.h"
#include "offers/few_queries.h"

namespace harpe::cuda {
namespace {

using device::DecodeArgs;
using device::DecodeConfig;

constexpr std::int64_t kFewColumns = 8;
constexpr std::int64_t kMostColumns = 16;  // more would spill registers
// Keys that hold their values.
constexpr std::int64_t kLatentColumns = 32;
constexpr std::int64_t kLatentKeys = 576;
constexpr std::int64_t kLatentValues = 512;
constexpr std::int64_t kMostCuts = 8;
constexpr std::int64_t kLeastBoxRows = 8;  // of a swizzled box
constexpr const char* kShares = "keys in ";
constexpr const char* kOfShares = " shares";
constexpr const char* kGroups = " heads in ";
constexpr const char* kOfGroups = " groups";

bool is_masked(const AttentionSpec& spec) { return spec.causal || spec.window > 0 || spec.rule; }

// Whether the values are the first elements of the keys.
bool are_values_in_keys(const AttentionSpec& spec) {
  const auto place = [](const HeadTensor& tensor) {
    const device::AttentionStrides& strides = tensor.strides;
    return std::tuple(tensor.address, strides.batch, strides.row, strides.head);
  };
  const AttentionChunkSpec& chunk = spec.chunks.front();
  return place(chunk.keys) == place(chunk.values) && spec.query_dim == kLatentKeys &&
         spec.value_dim == kLatentValues;
}

// The fewest equal cuts of the query heads of a key head after which the queries of each head group
// fit. 0: too many would be needed.
std::int64_t find_cuts(const AttentionSpec& spec) {
  const std::int64_t heads = spec.heads / spec.kv_heads;
  const std::int64_t rows = spec.panels.front().rows;
  const std::int64_t most = are_values_in_keys(spec) ? kLatentColumns : kMostColumns;
  for (std::int64_t cuts = 1; cuts <= std::min(kMostCuts, heads); ++cuts) {
    if (heads % cuts == 0 && heads / cuts * rows <= most) return cuts;
  }
  return 0;
}

// Query heads of a head group. Requires: can_decode(spec), as for what follows.
std::int64_t group_of(const AttentionSpec& spec) {
  return spec.heads / spec.kv_heads / cut_heads(spec);
}

std::int64_t count_pairs(const AttentionSpec& spec) {
  return spec.batch * spec.kv_heads * cut_heads(spec);
}

// Columns of the kernel.
std::int64_t columns_of(const AttentionSpec& spec) {
  if (are_values_in_keys(spec)) return kLatentColumns;
  const bool has_few =
      cut_heads(spec) == 1 && group_of(spec) * spec.panels.front().rows <= kFewColumns;
  return has_few ? kFewColumns : kMostColumns;
}

// The most keys that a batch entry may have.
std::int64_t most_keys(const AttentionSpec& spec) {
  const bool is_paged = spec.tables && spec.tables->pages != 0;
  return is_paged ? spec.tables->page_count * spec.tables->page : spec.chunks.front().rows;
}

// The most key tiles of a pair. One without keys has a tile too.
std::int64_t tiles_of_pair(const AttentionSpec& spec) {
  const std::int64_t tile = tile_keys(decode_config(spec));
  return std::max<std::int64_t>(1, (most_keys(spec) + tile - 1) / tile);
}

// Key rows of one load. A box lies in one page; with lengths it is short, so that few rows are
// loaded in vain.
std::int64_t box_rows(const AttentionSpec& spec, const DecodeConfig& config) {
  constexpr std::int64_t kOfLengths = 64;
  const std::int64_t tile = tile_keys(config);
  if (!spec.tables) return tile;
  return spec.tables->pages != 0 ? std::gcd(tile, spec.tables->page) : kOfLengths;
}

bool have_tables(const KeyTables& tables, std::int64_t keys) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  if (tables.pages == 0) return tables.first_key <= kMost;
  return tables.page > 0 && tables.page % kLeastBoxRows == 0 && tables.page_count > 0 &&
         tables.page_count * tables.page <= kMost && tables.first_key + keys <= kMost;
}

TensorMapSpec map_of_keys(const AttentionSpec& spec, const HeadTensor& tensor, int rows) {
  // With stride 0 all batch entries share one storage, which the map has once.
  const bool shares = spec.batch > 1 && tensor.strides.batch == 0;
  return map_of_heads(tensor,
                      {.batch = shares ? 1 : spec.batch,
                       .rows = spec.chunks.front().rows,
                       .heads = spec.kv_heads,
                       .columns = spec.query_dim},
                      spec.element, rows);
}

device::DecodeTables tables_of(const AttentionSpec& spec) {
  device::DecodeTables tables{};
  if (!spec.tables) return tables;
  tables.lengths = pointer_to<const std::int32_t>(spec.tables->lengths);
  tables.pages = pointer_to<const std::int32_t>(spec.tables->pages);
  tables.length_stride = spec.tables->length_stride;
  tables.page_stride = spec.tables->page_stride;
  tables.sequence_stride = spec.tables->batch_stride;
  tables.page_count = static_cast<int>(spec.tables->page_count);
  if (spec.tables->pages != 0) tables.page = device::divisor(static_cast<int>(spec.tables->page));
  tables.first_key = static_cast<int>(spec.tables->first_key);
  return tables;
}

// Whether key heads are sequences with one key head each: the keys of one lie behind all keys of
// the one before.
bool are_sequences(const AttentionSpec& spec) {
  const AttentionChunkSpec& chunk = spec.chunks.front();
  const auto lie_apart = [&](const device::AttentionStrides& strides) {
    return strides.head >= chunk.rows * strides.row;
  };
  return spec.batch == 1 && !spec.tables && lie_apart(chunk.keys.strides) &&
         lie_apart(chunk.values.strides);
}

AttentionSpec with_heads_as_sequences(AttentionSpec spec) {
  AttentionPanelSpec& panel = spec.panels.front();
  AttentionChunkSpec& chunk = spec.chunks.front();
  for (HeadTensor* const tensor :
       {&panel.queries, &panel.output, &panel.lse, &chunk.keys, &chunk.values}) {
    tensor->strides.batch = tensor->strides.head;
  }
  spec.batch = spec.heads;
  spec.heads = spec.kv_heads = 1;
  return spec;
}

}  // namespace

bool can_decode(const AttentionSpec& spec) {
  if (spec.panels.size() != 1 || spec.chunks.size() != 1) return false;
  const AttentionPanelSpec& panel = spec.panels.front();
  const AttentionChunkSpec& chunk = spec.chunks.front();
  const bool waits = panel.ready.flag != nullptr || chunk.ready.flag != nullptr;
  const bool alike_dims =
      spec.query_dim == spec.value_dim && (spec.query_dim == 64 || spec.query_dim == 128);
  const bool heads = (alike_dims || are_values_in_keys(spec)) && spec.heads % spec.kv_heads == 0;
  // Keys and values must both have a storage per batch entry, or both share one.
  const bool alike = (chunk.keys.strides.batch == 0) == (chunk.values.strides.batch == 0);
  return spec.engine == LeafEngine::Own && !spec.carried && !is_masked(spec) && !waits &&
         panel.done == 0 && spec.copies.empty() && heads && alike && find_cuts(spec) > 0 &&
         (!spec.tables || have_tables(*spec.tables, chunk.rows));
}

AttentionSpec with_rows_as_heads(AttentionSpec spec) {
  const bool has_rows =
      spec.panels.size() == 1 && spec.chunks.size() == 1 && spec.panels.front().rows > 1;
  if (!has_rows || is_masked(spec) || spec.heads != spec.kv_heads) return spec;
  if (are_sequences(spec)) spec = with_heads_as_sequences(std::move(spec));
  AttentionPanelSpec& panel = spec.panels.front();
  const std::int64_t rows = panel.rows;
  const std::array<HeadTensor*, 3> tensors = {&panel.queries, &panel.output, &panel.lse};
  const auto follow = [&](const HeadTensor* tensor) {
    return spec.heads == 1 || tensor->strides.head == rows * tensor->strides.row;
  };
  if (!std::ranges::all_of(tensors, follow)) return spec;
  for (HeadTensor* const tensor : tensors) {
    tensor->strides.head = tensor->strides.row;
    tensor->strides.row *= spec.heads * rows;
  }
  panel.rows = 1;
  spec.heads *= rows;
  return spec;
}

int cut_heads(const AttentionSpec& spec) { return static_cast<int>(find_cuts(spec)); }

DecodeConfig decode_config(const AttentionSpec& spec) {
  DecodeConfig config;
  config.element = spec.element;
  config.output = spec.to_state ? device::Element::F32 : spec.element;
  config.exchanges = !spec.results.empty();
  config.head_dim = static_cast<int>(spec.query_dim);
  config.value_dim = static_cast<int>(spec.value_dim);
  config.columns = static_cast<int>(columns_of(spec));
  return with_most_slots(config);
}

bool is_faster_in_parts(const AttentionSpec& spec) {
  // Measured on two H200 (kernel_times.md): head groups together read 6.7 TB/s, mostly from the L2
  // cache. Parts of keys are read once, from memory, by several kernels, which take longer by 22
  // us.
  constexpr double kSharedBytesPerUs = 6.7e6;
  constexpr double kBytesPerUs = 4.3e6;
  constexpr double kKernelsUs = 22;
  if (cut_heads(spec) == 1 || are_values_in_keys(spec)) return false;
  const double bytes = static_cast<double>(spec.batch * spec.kv_heads * most_keys(spec)) *
                       static_cast<double>(spec.query_dim + spec.value_dim) * 2;
  return cut_heads(spec) * bytes / kSharedBytesPerUs > bytes / kBytesPerUs + kKernelsUs;
}

int choose_shares(const AttentionSpec& spec, int blocks) {
  // Measured on an H200 (kernel_times.md): a block reads 32 bytes a nanosecond, and joins eight
  // columns of a state, with up to 128 elements of values each, in 0.2 us.
  constexpr double kBytesPerUs = 32e3;
  constexpr double kJoinUs = 0.2;
  constexpr double kBunchUs = 0.7;  // until the state of a bunch is there
  const DecodeConfig config = decode_config(spec);
  const std::int64_t cuts = cut_heads(spec);
  const std::int64_t pairs = count_pairs(spec);
  const std::int64_t tiles = pairs * tiles_of_pair(spec);
  const double tile_us = slots_per_tile(config) * slot_bytes(config) / kBytesPerUs;
  const std::int64_t queries = group_of(spec) * spec.panels.front().rows;
  const std::int64_t eights = (queries + 7) / 8 * value_blocks(config);  // of columns, by state
  const auto estimate = [&](std::int64_t shares) {
    const std::int64_t longest = (tiles + shares - 1) / shares;
    const std::int64_t parts = (shares + pairs - 1) / pairs;
    return static_cast<double>(longest) * tile_us +
           static_cast<double>(joined_in_turn(parts) * eights) * kJoinUs +
           (has_bunches(parts) ? kBunchUs : 0);
  };
  const std::int64_t most = std::min<std::int64_t>(blocks, tiles);
  // Each cut has equally many shares, so that all cuts read the same keys at the same time.
  std::int64_t best = 1;
  for (std::int64_t shares = cuts; shares <= most; shares += cuts) {
    if (estimate(shares) < estimate(best)) best = shares;
  }
  return static_cast<int>(best);
}

std::string print_shares(int shares, int cuts) {
  const std::string text = kShares + std::to_string(shares) + kOfShares;
  return cuts == 1 ? text : text + kGroups + std::to_string(cuts) + kOfGroups;
}

std::optional<int> parse_shares(std::string_view variant, int cuts) {
  const std::string_view begin = kShares;
  if (!variant.starts_with(begin)) return std::nullopt;
  int shares = 0;
  const std::string_view number = variant.substr(begin.size());
  std::from_chars(number.data(), number.data() + number.size(), shares);
  return print_shares(shares, cuts) == variant ? std::optional(shares) : std::nullopt;
}

std::vector<std::uint32_t> count_stores(const AttentionSpec& spec) {
  std::vector<std::uint32_t> counts(spec.fused_stores.size());
  const std::int64_t group = group_of(spec);
  const auto heads = spec.heads / static_cast<std::int64_t>(spec.results.size());
  for (const AttentionResultSpec& result : spec.results) {
    if (result.fused_store < 0) continue;
    const std::int64_t first = result.first_head / group;
    const std::int64_t last = (result.first_head + heads - 1) / group;
    counts[static_cast<std::size_t>(result.fused_store)] +=
        static_cast<std::uint32_t>(spec.batch * (last - first + 1));
  }
  return counts;
}

Checked<Ok> check_shares(const AttentionSpec& spec, int blocks) {
  HP_REQUIRE_OK(check_count("shares of the keys", spec.shares, 0, can_decode(spec) ? blocks : 0));
  if (spec.shares > 0) {
    const std::int64_t pairs = std::max<std::int64_t>(1, count_pairs(spec));
    HP_REQUIRE_OK(check_count("key tiles of a head", tiles_of_pair(spec), 1,
                              std::numeric_limits<std::int32_t>::max() / pairs));
  }
  const auto results = static_cast<std::int64_t>(spec.results.size());
  HP_REQUIRE_OK(check_count("results of a panel", results, 0,
                            spec.shares > 0 ? device::kMostDecodeResults : 0));
  std::int64_t addends = 0;
  for (const AttentionResultSpec& result : spec.results) {
    addends += static_cast<std::int64_t>(result.addends.size());
  }
  return check_count("addends of a panel", addends, 0, device::kMostDecodeAddends);
}

namespace {

device::DecodeExchange exchange_of(const AttentionSpec& spec) {
  device::DecodeExchange exchange{};
  exchange.wait = spec.wait;
  exchange.heads = device::divisor(static_cast<std::int32_t>(spec.heads) /
                                   static_cast<std::int32_t>(spec.results.size()));
  for (const AttentionResultSpec& from : spec.results) {
    device::DecodeResult& to = exchange.results[exchange.result_count++];
    to.output = pointer_to<void>(from.output.address);
    to.lse = pointer_to<float>(from.lse.address);
    to.strides = from.output.strides;
    to.lse_strides = from.lse.strides;
    to.first_addend = exchange.addend_count;
    to.addends = static_cast<std::int32_t>(from.addends.size());
    for (const AttentionAddendSpec& addend : from.addends) {
      exchange.addends[exchange.addend_count++] = {
          .output = pointer_to<const float>(addend.output.address),
          .lse = pointer_to<const float>(addend.lse.address),
          .strides = addend.output.strides,
          .lse_strides = addend.lse.strides,
          .ready = addend.ready};
    }
  }
  return exchange;
}

}  // namespace

DecodePlan plan_decode(const AttentionSpec& spec) {
  const AttentionPanelSpec& panel = spec.panels.front();
  const AttentionChunkSpec& chunk = spec.chunks.front();
  const auto rows = static_cast<int>(box_rows(spec, decode_config(spec)));
  const double scale_log2 = scale_of(spec) * std::numbers::log2e;
  const int cuts = cut_heads(spec);
  DecodePlan plan;
  plan.pairs = count_pairs(spec);
  plan.maps = {map_of_keys(spec, chunk.keys, rows), map_of_keys(spec, chunk.values, rows)};
  DecodeArgs& args = plan.args;
  args.queries = pointer_to<const void>(panel.queries.address);
  args.query_strides = panel.queries.strides;
  args.output = pointer_to<void>(panel.output.address);
  args.lse = pointer_to<float>(panel.lse.address);
  args.strides = panel.output.strides;
  args.lse_strides = panel.lse.strides;
  args.tables = tables_of(spec);
  args.batch = static_cast<int>(spec.batch);
  args.kv_heads = device::divisor(static_cast<int>(spec.kv_heads));
  args.group = device::divisor(static_cast<int>(group_of(spec)));
  args.shares = device::divisor(spec.shares);
  args.tiles = device::divisor(static_cast<int>(tiles_of_pair(spec)));
  args.queries_per_sequence = static_cast<int>(panel.rows);
  args.keys_per_sequence = static_cast<int>(chunk.rows);
  args.batch_step = spec.batch > 1 && chunk.keys.strides.batch == 0 ? 0 : 1;
  args.box_rows = rows;
  args.boxes = tile_keys(decode_config(spec)) / rows;
  args.keys_are_fixed = spec.keys_are_fixed ? 1 : 0;
  args.scale_log2 = static_cast<float>(scale_log2);
  args.slack = static_cast<float>(kSlackLog2 / scale_log2);
  args.cuts = {.cuts = device::divisor(cuts),
               .sequences = device::divisor(static_cast<int>(spec.batch))};
  if (!spec.results.empty()) plan.exchange = exchange_of(spec);
  return plan;
}

}  // namespace harpe::cuda
