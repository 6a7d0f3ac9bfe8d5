#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/cuda/gemm_experiments.h"
#include "bench/cuda/gemm_subject.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"

namespace harpe::bench {
namespace {

constexpr const char* kCheck = "check gemm";

using device::GemmConfig;

void run(Bench& bench, const GemmCase& what, const GemmConfig& config, NamedTrial named,
         std::uint64_t seed) {
  named.experiment = kCheck;
  run_trial(bench, named, seed, [&](const TrialPlaces& places, Draw& draw) {
    return make_gemm_subject(what, config, named.options, places, draw);
  });
}

// Those that multiply alone: variants whose threads exchange sums are checked by exchange_sums.
std::vector<GemmConfig> configs_alone() {
  std::vector<GemmConfig> configs = cuda::shipped_gemm_configs();
  std::erase_if(configs, [](const GemmConfig& config) { return config.by_threads; });
  return configs;
}

// Every shipped variant on random sizes, including odd ones, cut into panels and K chunks.
void check_variants(Bench& bench) {
  Draw draw(bench.options().seed);
  for (const GemmConfig& config : configs_alone()) {
    for (int turn = 0; turn < bench.times(5); ++turn) {
      GemmCase what = random_case(draw, config, 900);
      if (turn % 2 == 1) cut_at_random(draw, config, what, 4, 4);
      const std::string name = fmt::format("{} in {} panels", what.name, what.panels.size());
      run(bench, what, config, {.name = name, .options = {}, .launches = 2}, draw.bits());
    }
  }
}

// Every shipped variant on the smallest sizes of each dimension.
void check_edges(Bench& bench) {
  struct Size {
    std::int64_t m, n, k;
  };
  Draw draw(bench.options().seed + 1);
  for (const GemmConfig& config : configs_alone()) {
    for (const Size& size : {Size{1, 1, 1}, {1, 513, 72}, {257, 8, 65}, {300, 520, 8}}) {
      GemmCase what = random_case(draw, config, 64);
      what.m =
          config.few_rows ? std::min<std::int64_t>(size.m, config.tile_m * config.cluster) : size.m;
      what.n = columns_for(config, size.n);
      what.k = depth_for(config, size.k);
      what.panels = uncut(what.m, what.k);
      const std::string name =
          fmt::format("{} {}x{}x{} edge", describe(config), what.m, what.n, what.k);
      run(bench, what, config, {.name = name, .options = {}}, draw.bits());
    }
  }
}

// A few configurations for checks with many launches. Grouped GEMMs neither wait nor signal.
std::vector<GemmConfig> chosen_configs(Bench& bench, Draw& draw, int wanted) {
  std::vector<GemmConfig> chosen = configs_alone();
  std::erase_if(chosen, [](const GemmConfig& config) { return config.groups; });
  draw.shuffle(chosen);
  chosen.resize(std::min(chosen.size(), static_cast<std::size_t>(bench.times(wanted))));
  return chosen;
}

// K chunks arrive in random order after random pauses, in both parities of epochs and around the
// overflow of 32 bits; finished panels are read while others are computed.
void check_arrivals(Bench& bench) {
  Draw draw(bench.options().seed + 2);
  for (const GemmConfig& config : chosen_configs(bench, draw, 10)) {
    for (const bool is_all : {false, true}) {
      if (is_all && config.few_rows) continue;  // weights are loaded without waiting for flags
      GemmCase what = random_case(draw, config, 600);
      cut_at_random(draw, config, what, 5, 3);
      NamedTrial named = {.options = {.arrivals = draw.coin() ? 1U : 3U,
                                      .all_arrive = is_all,
                                      .first_epoch = draw.coin() ? 0 : 0xffffffc0U,
                                      .counters = true},
                          .launches = bench.times(bench.options().repeat)};
      named.name = fmt::format("{} arriving in {} K chunks of {} panels{}", what.name,
                               what.k_chunks(), what.panels.size(), is_all ? ", and B" : "");
      run(bench, what, config, named, draw.bits());
    }
  }
}

// Some thread blocks of the kernel copy A while the others multiply.
void check_fetches(Bench& bench) {
  Draw draw(bench.options().seed + 5);
  int left = bench.times(10);
  std::vector<GemmConfig> configs = cuda::shipped_gemm_configs();
  draw.shuffle(configs);
  for (const GemmConfig& config : configs) {
    if (!config.copies || config.m_major || left-- <= 0) continue;
    GemmCase what = random_case(draw, config, 900);
    cut_at_random(draw, config, what, 5, 1);
    const int blocks = 2 * static_cast<int>(draw.between(1, 8));
    const std::string name =
        fmt::format("{} in {} panels, {} blocks fetch", what.name, what.panels.size(), blocks);
    run(bench, what, config,
        {.name = name,
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
  Draw draw(bench.options().seed + 3);
  for (const GemmConfig& config : chosen_configs(bench, draw, 10)) {
    GemmCase what = random_case(draw, config, 900);
    cut_at_random(draw, config, what, 5, 1);
    const std::string name =
        fmt::format("{} to a peer in {} panels", what.name, what.panels.size());
    run(bench, what, config,
        {.name = name,
         .options = {.counters = true, .to_peer = true},
         .launches = bench.times(bench.options().repeat / 2)},
        draw.bits());
  }
}

// A K chunk never arrives.
void check_faults(Bench& bench) {
  Draw draw(bench.options().seed + 4);
  for (const GemmConfig& config : chosen_configs(bench, draw, 10)) {
    GemmCase what = random_case(draw, config, 600);
    cut_at_random(draw, config, what, 4, 3);
    const std::string name =
        fmt::format("{} without one of {} K chunks", what.name, what.k_chunks());
    run(bench, what, config,
        {.name = name,
         .options = {.arrivals = 2, .limit_ns = 50'000'000},
         .launches = 3,
         .without_a_parcel = true},
        draw.bits());
  }
}

}  // namespace

void check_gemm(Bench& bench) {
  check_variants(bench);
  check_edges(bench);
  check_arrivals(bench);
  check_fetches(bench);
  check_faults(bench);
  check_fused_stores(bench);
}

}  // namespace harpe::bench
