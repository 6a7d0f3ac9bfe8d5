#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "exec/cuda/kernels/gemm/few_rows.h"
#include "exec/cuda/kernels/gemm/gemm.h"
#include "offers/gemm_tiles.h"
#include "support/check.h"

// Which kernel multiplies, and how it cuts its tiles: the one of the fewest estimated clocks.
namespace harpe::cuda {
namespace {

using device::GemmConfig;

// The tiles that groups are expected to have. Row counts that choices bring vary by their square
// root, and the last chunk of a panel is on average half empty.
std::int64_t group_tiles(const GemmSpec& spec, const GemmConfig& config) {
  std::map<std::int64_t, double> rows;  // by B
  std::map<std::int64_t, double> ends;
  for (const GemmPanelSpec& panel : spec.panels) {
    const bool known = panel.likely_rows == 0;
    rows[panel.b_first] += static_cast<double>(known ? panel.rows : panel.likely_rows);
    ends[panel.b_first] += known ? 0 : config.chunk_rows() / 2.0;
  }
  double tiles = 0;
  for (const auto& [first, count] : rows) {
    const double spread = ends.at(first) > 0 ? 2 * std::sqrt(count) + ends.at(first) : 0;
    tiles += std::ceil((count + spread) / config.tile_m);
  }
  return static_cast<std::int64_t>(tiles) * ((spec.n + config.tile_n - 1) / config.tile_n);
}

GemmTile tile_of(const GemmConfig& config) {
  return {.rows = config.tile_m,
          .columns = config.tile_n,
          .cluster = config.cluster,
          .ping_pong = config.ping_pong,
          .by_threads = config.by_threads,
          .m_major = config.m_major,
          .swapped = config.swapped};
}

// Clocks of an SM for one stage. With `reads_memory` each byte of B is read once, from memory, at
// the rate of few rows.
double stage_clocks(const GemmConfig& config, std::int64_t active_blocks, bool reads_memory) {
  const auto active = static_cast<double>(active_blocks);
  const double cached = cached_bytes_per_clock(active);
  const double rate = reads_memory ? std::min(cached, kStreamedThroughCache / active) : cached;
  const double clocks = harpe::stage_clocks(tile_of(config), rate);
  if (!reads_memory) return clocks;
  // Fitted to six sums of 48 to 128 rows on two H200, where a kernel follows one like it.
  constexpr double kBehindLike = 2500;
  const double memory = config.by_threads ? kBehindLike : streamed_from_memory(active);
  return std::max(clocks, config.b_bytes() * active / config.cluster / memory);
}

// Whether C is one row of tiles. As in groups, each weight then serves few rows, and the L2 cache
// does not hold what another tile reads again.
bool has_one_row_of_tiles(const GemmSpec& spec, const GemmConfig& config) {
  return row_panels(spec) == 1 && spec.panels.front().rows <= config.tile_m * config.cluster;
}

// ring_clocks of a tile kernel. Of a band of `group` rows of tiles, those above each other load the
// same weights, and the L2 cache has them for all but the first.
double fill_clocks(const GemmSpec& spec, const GemmConfig& config, int group,
                   std::int64_t active_blocks) {
  const std::int64_t columns = (spec.n + config.tile_n - 1) / config.tile_n;
  const double above = std::min<double>(
      group, static_cast<double>(cluster_tiles(spec, config)) / static_cast<double>(columns));
  const double rings = static_cast<double>(active_blocks) / config.cluster / above;
  constexpr RingFill kFill{.latency = 1900, .bytes_per_clock = 2930};
  // Where a pair has all rows, in tiles of 96 or 112 x 128: fitted to seven GEMMs.
  constexpr RingFill kOfPairs{.latency = 1500, .bytes_per_clock = 4000};
  constexpr double kSooner = 0.85;  // for a single row of single blocks
  const bool is_one_row = has_one_row_of_tiles(spec, config);
  const bool has_pairs = is_one_row && config.cluster == 2 && config.swapped &&
                         config.tile_m <= 112 && config.tile_n == 128;
  const bool is_sooner = is_one_row && config.cluster == 1;
  // Two rows of tiles by single blocks get weights at this rate at most, as if memory brought them
  // twice. Fitted to 71 GEMMs of 160 to 1,280 rows alone on one H200. Where sums are awaited,
  // choices are those of earlier measurements.
  constexpr double kTwice = 1400;
  const bool is_twice =
      config.cluster == 1 && above >= 2 && std::ranges::none_of(spec.panels, is_awaited);
  const double of_columns = std::min(rings, static_cast<double>(columns));
  const double least = is_twice ? of_columns * config.b_bytes() / kTwice : 0;
  const double filled =
      ring_clocks(config.stages, config.b_bytes(), rings, has_pairs ? kOfPairs : kFill);
  return std::max(least, filled * (is_sooner ? kSooner : 1));
}

// Where one cluster has all rows, what it saves of memory makes up for its later start.
double edge_clocks(const GemmSpec& spec, const GemmConfig& config) {
  GemmTile tile = tile_of(config);
  const bool has_all =
      has_one_row_of_tiles(spec, config) && spec.panels.front().rows > config.tile_m;
  if (has_all) tile.cluster = 1;
  return harpe::edge_clocks(tile);
}

struct Tail {
  int parts = 1;
  double clocks = 0;
};

// The best cut of `rest` tiles that do not fill a wave, into parts that fill waves.
// `clocks_of(parts)`: clocks of a whole tile when tiles are cut into `parts`.
template <class ClocksOf>
Tail best_tail(const GemmConfig& config, std::int64_t rest, std::int64_t clusters, int most_parts,
               const ClocksOf& clocks_of) {
  Tail best{.parts = 1, .clocks = rest == 0 ? 0.0 : clocks_of(1)};
  if (!config.cuts) return best;
  for (int parts = 2; parts <= most_parts && rest > 0; ++parts) {
    const std::int64_t rounds = (rest * parts + clusters - 1) / clusters;
    const double clocks = static_cast<double>(rounds) * clocks_of(parts) / parts +
                          leave_clocks(tile_of(config), rounds) +
                          add_up_clocks(tile_of(config), parts);
    if (clocks < best.clocks) best = {.parts = parts, .clocks = clocks};
  }
  return best;
}

constexpr double kClocksPerSecond = 1.5e9;
constexpr double kLink = 260;    // bytes a clock: 389 GB/s
constexpr double kFirst = 5500;  // clocks from the start of the kernel until rows arrive

double bytes_of_b(const GemmSpec& spec) { return 2.0 * static_cast<double>(spec.n * spec.k); }

constexpr double kCache = 50e6;  // bytes of B that stay in the L2 cache

// Clocks in which memory brings B. B that exceeds the L2 cache is read again by each panel that
// waits, since such panels are not in step.
double memory_clocks(const GemmSpec& spec) {
  constexpr double kBytesPerClock = 2870;  // 4.3 TB/s at 1.5 GHz
  const auto late = std::ranges::count_if(spec.panels, awaits_rows);
  const bool some_begin = late < std::ssize(spec.panels);
  const double b = bytes_of_b(spec);
  const double readers = b > kCache ? static_cast<double>(late) + (some_begin ? 1 : 0) : 1;
  return readers * b / kBytesPerClock;
}

double copied_bytes(const GemmSpec& spec) {
  double bytes = 0;
  for (const device::CopyJob& copy : spec.copies) bytes += static_cast<double>(copy.bytes);
  return bytes;
}

Tickets tickets_of(const GemmSpec& spec, const GemmChoice& choice, std::int64_t clusters) {
  Tiling tiling{.tile = tile_of(choice.config), .parts = choice.parts, .whole = choice.full_tiles};
  if (choice.joined > 0) tiling.joined = choice.joined;
  Tickets tickets(tiling, clusters, spec.copy_blocks / choice.config.cluster);
  for (const GemmPanelSpec& panel : spec.panels) {
    if (panel.rows_of >= 0) continue;  // it shares rows
    tickets.add(1, static_cast<double>(panel.rows), static_cast<double>(spec.n));
  }
  return tickets;
}

// Clocks until the last tile, where rows arrive during the kernel: a late panel delays all later
// tickets of its thread blocks. Panels arrive one after the other, at the rate of a link. Of rows
// that arrive in K chunks the first are multiplied meanwhile.
double held_clocks(const GemmSpec& spec, const GemmChoice& choice, const Tickets& tickets,
                   double tile_clocks) {
  std::vector<double> arrivals;
  double bytes = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    if (panel.rows_of >= 0) continue;
    const bool is_late = awaits_rows(panel) && panel.k_chunks.size() == 1;
    if (is_late) bytes += 2.0 * static_cast<double>(panel.rows * panel.k_chunks.front().k_count);
    arrivals.push_back(is_late ? kFirst + bytes / kLink : 0);
  }
  double most = 0;
  for (std::size_t panel = 0; panel < arrivals.size(); ++panel) {
    const double steps = tickets.steps(panel, arrivals.size() - 1);
    most = std::max(most, arrivals[panel] + steps * tile_clocks);
  }
  if (choice.joined > 0) {
    const double copies = copied_clocks(copied_bytes(spec));
    most = std::max(most, copies + tickets.steps_of_copiers() * tile_clocks);
  }
  // Where no tile is whole: fitted to `ag_gemm` 288x10240x8192 and 304x10240x8192 on two H200.
  constexpr double kAllCut = 8000;
  const bool is_all_cut = choice.parts > 1 && choice.full_tiles == 0;
  return most + tickets.cut_clocks() + (is_all_cut ? kAllCut : 0);
}

// Clocks until what has crossed the link is added up. Where threads of a tile kernel do it, with
// ping-pong only half of them do. Kernels for few rows join parts before, pairs of them strips.
// Fitted to 21 sums on two H200.
double hop_clocks(const GemmConfig& config) {
  if (config.few_rows) return config.cluster == 1 ? 6500 : 14000;
  return config.by_threads && config.ping_pong ? 8000 : 4000;
}

// What leaves a kernel that computes sums over ranks.
struct Exchange {
  std::size_t sent = 0;  // its first panels, whose sums other ranks add
  std::size_t kept = 0;  // the panels behind them, to whose sums it adds those of others
  double sums = 0;       // bytes of these sums, once for each rank that adds them
  double totals = 0;     // bytes of the results that it sends, once it has added others' sums
};

Exchange exchange_of(const GemmSpec& spec) {
  Exchange exchange;
  bool are_sent = true;
  for (const GemmPanelSpec& panel : spec.panels) {
    const auto bytes = static_cast<double>(panel.rows * spec.n * device::bytes_of(spec.out));
    // The same sums for one more rank.
    const bool is_repeated = panel.rows_of >= 0 && panel.addends.empty() && is_awaited(panel);
    if (panel.is_copy) {
      exchange.totals += bytes;
    } else if (is_repeated) {
      exchange.sums += bytes;
    }
    exchange.kept += adds_to_sums(panel) ? 1 : 0;
    are_sent = are_sent && sends_sums(panel);
    if (!are_sent) continue;
    ++exchange.sent;
    exchange.sums += bytes;
  }
  return exchange;
}

// Clocks from the last tile until the exchange is done: ranks are in step, so the sums that this
// one awaits arrive as its own do elsewhere. A wave of tiles leaves as a whole, and its totals
// leave once the sums of the others have arrived. Where all tiles are one wave, nothing overlaps.
// `hop`: hop_clocks. Of many waves the last one is less than the error of an estimate.
double exchange_clocks(const Exchange& exchange, const Tickets& tickets, double tile_clocks,
                       double hop) {
  constexpr double kMostWaves = 8;
  constexpr double kCut = 0.4;  // of a tile: fitted to three plans of few waves with cut tiles
  const double all = tickets.steps(0, tickets.panels() - 1);
  if (exchange.sent == 0 || all > kMostWaves) return 0;
  const double first = tickets.steps(0, exchange.sent - 1);
  const double sums = exchange.sums / kLink;
  const double totals = exchange.totals / kLink;
  const double arrived =
      std::max(first * tile_clocks + sums / std::ceil(first), tile_clocks + sums) + hop;
  // Without bands a block computes its first own tile, waits for all sums, then computes the
  // others.
  const double rest =
      exchange.kept == 1 ? tickets.steps(exchange.sent, tickets.panels() - 1) - 1 : 0;
  const double computed = std::max(all * tile_clocks, arrived + rest * tile_clocks);
  const double added = computed + totals / std::max(1.0, all - first);
  const double cut = all < 3 && tickets.cut_clocks() > 0 ? kCut * tile_clocks : 0;
  return std::max(added, tile_clocks + sums + totals) - all * tile_clocks + cut;
}

struct Estimate {
  GemmChoice choice;
  double clocks = 0;
};

// How many clocks more kernels for few rows take than the others at their start and end, where
// weights are not loaded ahead. Where they are, or where C is awaited, choices are those of earlier
// measurements, which have not been repeated.
double lag_clocks(const GemmSpec& spec) {
  constexpr double kLag = 3000;
  return spec.b_is_fixed || std::ranges::any_of(spec.panels, is_awaited) ? 0 : kLag;
}

// Where C is awaited, a stream begins its next tile only when the sums of the one before have left
// and those of other ranks are added. Fitted to one plan on two H200, `gemm_rs` 192x28672x4096, of
// four tiles a stream.
double turn_clocks(const GemmSpec& spec, std::int64_t tiles, int streams) {
  constexpr double kTurn = 15000;
  if (!std::ranges::any_of(spec.panels, is_awaited)) return 0;
  return kTurn * static_cast<double>((tiles - 1) / streams);
}

// Clocks by which sums and rows of other ranks delay streams. Pairs of blocks send sums later than
// tiles do. Where rows come late, pairs have had room for few weights; but weights that exceed the
// L2 cache are read once, where tiles take longer than their estimate. Fitted on two H200 to 21
// sums, to eleven plans of `gemm_rs` and to eight of `ag_gemm`.
double delay_clocks(const GemmSpec& spec, const GemmConfig& config) {
  constexpr double kSums = 7000;
  constexpr double kRows = 12000;
  if (adds_up_all(spec)) return hop_clocks(config);
  if (config.cluster == 1) return 0;
  if (std::ranges::any_of(spec.panels, is_awaited)) return kSums;
  const bool are_late = std::ranges::any_of(spec.panels, awaits_rows);
  return are_late && bytes_of_b(spec) <= kCache ? kRows : 0;
}

Estimate estimate_streamed(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  const StreamEstimate found = estimate_streams(spec, config, blocks - spec.copy_blocks);
  GemmChoice choice = whole_gemm(spec, config);
  choice.parts = found.streams;
  choice.stream_blocks = found.stream_blocks;
  // Where every stream has one whole tile, all store their columns of C at once. Fitted to 64 to
  // 256 rows; in tiles of 128 columns by single blocks it costs nothing. It is added here, because
  // the number of streams was fitted without it.
  const std::int64_t tiles = (spec.n + config.tile_n - 1) / config.tile_n;
  const bool is_whole = found.streams == tiles && found.stream_blocks == 1;
  const bool is_free = config.tile_m < 64 || (config.tile_n == 128 && config.cluster == 1);
  const double stores = is_whole && !is_free ? 2000 : 0;
  const double turns = turn_clocks(spec, tiles, found.streams);
  const Exchange exchange = exchange_of(spec);  // all sums leave at the end
  const double exchanged = (exchange.sums + exchange.totals) / kLink;
  return {.choice = choice,
          .clocks = found.clocks + stores + turns + exchanged + delay_clocks(spec, config) +
                    lag_clocks(spec)};
}

// `rounds` > 0: behind so many tiles of each other cluster, those that copy compute too.
Estimate estimate_tiled(const GemmSpec& spec, const GemmConfig& config, int blocks,
                        std::int64_t rounds) {
  const std::int64_t clusters = (blocks - spec.copy_blocks) / config.cluster;
  HP_CHECK(clusters > 0, "check() was not asked");
  const std::int64_t all = rounds > 0 ? blocks / config.cluster : clusters;
  const std::int64_t tiles =
      config.groups ? group_tiles(spec, config) : cluster_tiles(spec, config);
  const auto least = static_cast<double>(least_blocks(spec));
  const bool is_one_row = has_one_row_of_tiles(spec, config);
  GemmChoice choice = whole_gemm(spec, config);
  // Of a whole tile, if so many tiles or parts of tiles run at once, which share the bandwidths.
  const auto tile_clocks = [&](std::int64_t at_once) {
    const std::int64_t active = std::min(all, at_once) * config.cluster;
    double stage = stage_clocks(config, active, is_one_row || config.groups);
    const bool is_filled = !config.groups && (!config.by_threads || config.ping_pong);
    if (is_filled) stage = std::max(stage, fill_clocks(spec, config, choice.group, active));
    return least * stage + store_clocks(tile_of(config));
  };
  choice.joined = static_cast<int>(rounds * clusters);
  const std::int64_t rest = (tiles - choice.joined) % all;
  const Tail tail = best_tail(config, rest, all, most_parts(spec),
                              [&](int parts) { return tile_clocks(rest * parts); });
  if (tail.parts > 1) {
    choice.full_tiles = static_cast<int>(tiles - rest);
    choice.parts = tail.parts;
  }
  double clocks = static_cast<double>(tiles / clusters) * tile_clocks(tiles) + tail.clocks;
  const Tickets tickets = tickets_of(spec, choice, clusters);
  if (choice.joined > 0 || (!config.groups && std::ranges::any_of(spec.panels, awaits_rows))) {
    clocks = held_clocks(spec, choice, tickets, tile_clocks(tiles));
  }
  if (!config.groups) clocks = std::max(clocks, memory_clocks(spec));
  clocks += exchange_clocks(exchange_of(spec), tickets, tile_clocks(tiles), hop_clocks(config));
  clocks += edge_clocks(spec, config);
  return {.choice = choice,
          .clocks = clocks / clock_under_load(tile_of(config), clocks / kClocksPerSecond)};
}

Estimate estimate(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  if (config.few_rows) return estimate_streamed(spec, config, blocks);
  Estimate best = estimate_tiled(spec, config, blocks, 0);
  if (!can_join(spec)) return best;
  constexpr std::int64_t kMostRounds = 4;
  const std::int64_t clusters = (blocks - spec.copy_blocks) / config.cluster;
  for (std::int64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
    if (rounds * clusters >= cluster_tiles(spec, config)) break;
    const Estimate joined = estimate_tiled(spec, config, blocks, rounds);
    if (joined.clocks < best.clocks) best = joined;
  }
  return best;
}

}  // namespace

GemmChoice cut_gemm(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  return estimate(spec, config, blocks).choice;
}

GemmChoice choose_gemm(const GemmSpec& spec, int blocks) {
  const bool is_awaited_inside = std::ranges::any_of(spec.panels, is_awaited);
  Estimate best{.choice = {}, .clocks = std::numeric_limits<double>::infinity()};
  const std::vector<GemmConfig> configs = gemm_configs(spec);
  // Where no other kernel was faster by more than the noise (kernel_times.md).
  constexpr std::int64_t kRowsOfOneKernel = 32;
  constexpr std::int64_t kShort = 1024;
  const bool has_few = std::ranges::any_of(configs, &GemmConfig::few_rows);
  const bool are_few = has_few && rows_in_tile(spec) <= kRowsOfOneKernel &&
                       (spec.k > kShort || lag_clocks(spec) == 0 || adds_up_all(spec));
  for (const GemmConfig& config : configs) {
    if (are_few && !config.few_rows) continue;
    // Stores to a peer are slow; with ping_pong the other consumer multiplies in the meantime.
    const bool has_next =
        cluster_tiles(spec, config) > (blocks - spec.copy_blocks) / config.cluster;
    if (is_awaited_inside && has_next && !config.ping_pong && !config.few_rows) continue;
    // The simulator predicts longer exchanges with such tiles, and none has been timed.
    const bool is_low = config.tile_m < 128 && config.tile_n == 128 && config.cluster == 1;
    if (is_awaited_inside && is_low && !config.few_rows) continue;
    const Estimate found = estimate(spec, config, blocks);
    if (found.clocks < best.clocks) best = found;
  }
  HP_CHECK(std::isfinite(best.clocks), "check() was not asked");
  return best.choice;
}

}  // namespace harpe::cuda
