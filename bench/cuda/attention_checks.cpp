#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/cuda/attention_experiments.h"
#include "bench/cuda/attention_subject.h"
#include "exec/cuda/kernels/attention/attention_variants.h"

namespace harpe::bench {
namespace {

constexpr const char* kCheck = "check attention";

using device::AttentionConfig;

void run(Bench& bench, const AttentionCase& what, const AttentionConfig& config, NamedTrial named,
         std::uint64_t seed) {
  named.experiment = kCheck;
  named.name =
      fmt::format("{} {}: {}", cuda::attention_variant(config).name, what.name, named.name);
  run_trial(bench, named, seed, [&](const TrialPlaces& places, Draw& draw) {
    return make_attention_subject(what, config, named.options, places, draw);
  });
}

std::string cuts_text(const AttentionCase& what) {
  return fmt::format("{} panels, {} chunks", what.panels.size(), what.chunks.size());
}

// Every shipped configuration under random masks, heads and sizes.
void check_variants(Bench& bench) {
  Draw draw(bench.options().seed + 20);
  for (const AttentionConfig& config : cuda::attention_configs()) {
    for (int turn = 0; turn < bench.times(10); ++turn) {
      AttentionCase what = random_case(draw, config, turn % 3 == 0 ? 1200 : 400);
      if (turn % 2 == 1) cut_randomly(what, draw, 4, 6);
      run(bench, what, config, {.name = cuts_text(what), .launches = 2}, draw.bits());
    }
  }
}

void check_edges(Bench& bench) {
  struct Size {
    std::int64_t rows, keys;
  };
  Draw draw(bench.options().seed + 21);
  for (const AttentionConfig& config : cuda::attention_configs()) {
    for (const Size& size : {Size{1, 1}, {1, 700}, {129, 1}, {128, 128}, {257, 129}}) {
      AttentionCase what = random_case(draw, config, 64);
      what.rows = size.rows;
      what.keys = size.keys;
      what.window = 0;
      what.first_position = size.keys - size.rows;
      leave_whole(what);
      what.name = describe(what);
      run(bench, what, config, {.name = "edge"}, draw.bits());
    }
  }
}

std::vector<AttentionConfig> chosen_configs(Bench& bench, Draw& draw, int wanted) {
  std::vector<AttentionConfig> chosen = cuda::attention_configs();
  draw.shuffle(chosen);
  chosen.resize(std::min(chosen.size(), static_cast<std::size_t>(bench.times(wanted))));
  return chosen;
}

void check_arrivals(Bench& bench) {
  Draw draw(bench.options().seed + 22);
  for (const AttentionConfig& config : chosen_configs(bench, draw, 8)) {
    AttentionCase what = random_case(draw, config, 500);
    cut_randomly(what, draw, 3, 6);
    run(bench, what, config,
        {.name = "arriving in " + cuts_text(what),
         .options = {.arrivals = draw.coin() ? 1U : 3U,
                     .first_epoch = draw.coin() ? 0 : 0xffffffc0U,
                     .counters = true},
         .launches = bench.times(bench.options().repeat)},
        draw.bits());
  }
}

// A few thread blocks, or all but a few, so that the rest have many tiles each.
int random_copy_blocks(Draw& draw, int blocks) {
  return static_cast<int>(draw.coin() ? draw.between(1, 8) : blocks - draw.between(1, 16));
}

// Some thread blocks of the kernel copy all inputs while the others compute.
void check_fetches(Bench& bench) {
  Draw draw(bench.options().seed + 25);
  for (const AttentionConfig& config : chosen_configs(bench, draw, 8)) {
    AttentionCase what = random_case(draw, config, 900);
    cut_randomly(what, draw, 4, 6);
    const int blocks = random_copy_blocks(draw, bench.gpu().processors());
    run(bench, what, config,
        {.name = fmt::format("{}, {} blocks fetch", cuts_text(what), blocks),
         .options = {.counters = true, .copy_blocks = blocks},
         .launches = bench.times(bench.options().repeat / 2)},
        draw.bits());
  }
}

void check_fused_stores(Bench& bench) {
  if (bench.peer() == nullptr) {
    bench.report().skip(kCheck, "departure to a peer", "one GPU");
    return;
  }
  Draw draw(bench.options().seed + 23);
  for (const AttentionConfig& config : chosen_configs(bench, draw, 8)) {
    AttentionCase what = random_case(draw, config, 500);
    cut_randomly(what, draw, 4, 2);
    run(bench, what, config,
        {.name = "to a peer in " + cuts_text(what),
         .options = {.counters = true, .to_peer = true},
         .launches = bench.times(bench.options().repeat / 2)},
        draw.bits());
  }
}

// A chunk that some row sees never arrives.
void check_faults(Bench& bench) {
  Draw draw(bench.options().seed + 24);
  for (const AttentionConfig& config : chosen_configs(bench, draw, 8)) {
    AttentionCase what = random_case(draw, config, 500);
    what.causal = false;
    what.window = 0;
    cut_randomly(what, draw, 3, 4);
    what.name = describe(what);
    run(bench, what, config,
        {.name = "one missing of " + cuts_text(what),
         .options = {.arrivals = 2, .limit_ns = 50'000'000},
         .launches = 3,
         .without_a_parcel = true},
        draw.bits());
  }
}

}  // namespace

void check_attention(Bench& bench) {
  check_variants(bench);
  check_edges(bench);
  check_arrivals(bench);
  check_fetches(bench);
  check_faults(bench);
  check_fused_stores(bench);
}

}  // namespace harpe::bench
