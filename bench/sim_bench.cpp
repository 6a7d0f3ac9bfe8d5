// The event engine on rings of P ranks: 2 P^2 - P activities, each with its queue, its waits and
// the resources of one machine. Even: all ranks in step. Uneven: GEMMs take 1 to 1.5 times as long,
// so that few events coincide.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sim/engine.h"
#include "sim/fold.h"
#include "support/rng.h"

namespace harpe {
namespace {

constexpr std::int64_t kMicro = 1'000'000;  // picoseconds

enum At : std::int32_t { kSms, kMemory, kOut, kIn, kPerRank };

std::int32_t of(std::int64_t rank, At at) {
  return static_cast<std::int32_t>(rank) * kPerRank + at;
}

Workload ring(std::int64_t ranks, bool even) {
  Workload workload;
  workload.queues = static_cast<std::int32_t>(2 * ranks);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    workload.resources.push_back({ResourceKind::Sm, rank, 0, 132});
    workload.resources.push_back({ResourceKind::Memory, rank, 0, 4800e9});
    workload.resources.push_back({ResourceKind::Egress, rank, 0, 400e9});
    workload.resources.push_back({ResourceKind::Ingress, rank, 0, 400e9});
  }
  const auto add = [&](Activity activity) {
    workload.activities.push_back(std::move(activity));
    return static_cast<std::int32_t>(workload.activities.size()) - 1;
  };
  const auto depend = [&](std::int32_t before, std::int32_t after) {
    workload.dependencies.push_back({before, after, WaitKind::Signal, Picoseconds(kMicro)});
  };
  using Steps = std::vector<std::vector<std::int32_t>>;  // per step and rank
  Steps copies;
  Steps products;
  for (std::int64_t step = 0; step < ranks; ++step) {
    copies.emplace_back();
    products.emplace_back();
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto queue = static_cast<std::int32_t>(2 * rank);
      const auto s = static_cast<std::size_t>(step);
      const auto r = static_cast<std::size_t>(rank);
      const std::int64_t from = (rank + 1) % ranks;
      if (step > 0) {
        copies[s].push_back(add({.queue = queue + 1,
                                 .start = Picoseconds(2 * kMicro),
                                 .work = Picoseconds(100 * kMicro),
                                 .uses = {{of(from, kOut), 380e9},
                                          {of(rank, kIn), 380e9},
                                          {of(from, kMemory), 380e9},
                                          {of(rank, kMemory), 380e9}}}));
      }
      const std::int64_t longer =
          even ? 0 : static_cast<std::int64_t>(mix_bits(workload.activities.size()) % 60);
      products[s].push_back(add({.queue = queue,
                                 .start = Picoseconds(3 * kMicro),
                                 .work = Picoseconds((120 + longer) * kMicro),
                                 .uses = {{of(rank, kSms), 132}, {of(rank, kMemory), 1000e9}}}));
      if (step == 0) continue;
      depend(copies[s][r], products[s][r]);
      if (step > 1) depend(copies[s - 1][static_cast<std::size_t>(from)], copies[s][r]);
      if (step > 2) depend(products[s - 2][r], copies[s][r]);
    }
  }
  return workload;
}

void run(benchmark::State& state, bool even) {
  const Workload workload = ring(state.range(0), even);
  for (auto _ : state) benchmark::DoNotOptimize(run_workload(workload));
  state.counters["activities"] = static_cast<double>(workload.activities.size());
}

void run_folded(benchmark::State& state) {
  const Workload workload = ring(state.range(0), true);
  for (auto _ : state) {
    const std::optional<Quotient> quotient = fold(workload);
    if (!quotient) return state.SkipWithError("not folded");
    benchmark::DoNotOptimize(unfold(workload, *quotient, run_workload(quotient->workload)));
  }
}

BENCHMARK_CAPTURE(run, even, true)->Arg(8)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(run, uneven, false)->Arg(8)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK(run_folded)->Arg(8)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace harpe

BENCHMARK_MAIN();
