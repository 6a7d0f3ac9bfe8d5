#include <algorithm>

#include "exec/cuda/profile/leaf_grid.h"
#include "exec/cuda/profile/measure.h"
#include "support/check.h"

namespace harpe::cuda::profile {
namespace {

// Operands in rotation, so that a launch finds no more in the cache than in a plan.
constexpr std::int64_t kMostSets = 8;
constexpr std::int64_t kMostLeafTimes = 512;
constexpr double kLeast = 1e-7;  // seconds; a shorter leaf is lost beside a small kernel

std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kAlign = 1024;
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

std::int64_t sets_of(const LeafCase& one, std::int64_t cache) {
  const std::int64_t in = aligned(one.in_bytes);
  const std::int64_t out = aligned(one.out_bytes);
  HP_CHECK(in <= kSourceBytes && out <= kTargetBytes, "a leaf's operands fit");
  const std::int64_t fit = std::min(kSourceBytes / in, kTargetBytes / out);
  return std::clamp<std::int64_t>(2 * cache / (in + out) + 1, 1, std::min(fit, kMostSets));
}

Checked<Order> order_of(const LeafCase& one, const Member& member, std::int64_t times) {
  const std::int64_t sets = std::min(times, sets_of(one, member.device->facts().cache_bytes));
  std::vector<SharedLaunches> launches;
  for (std::int64_t set = 0; set < sets; ++set) {
    const Operands at{
        .in = member.source + static_cast<DeviceAddress>(set * aligned(one.in_bytes)),
        .out = member.target + static_cast<DeviceAddress>(set * aligned(one.out_bytes))};
    HP_TRY(const LaunchSpecs specs, one.plan(member, at));
    HP_TRY(SharedLaunches ready, make_ready(member, specs));
    launches.push_back(std::move(ready));
  }
  return Order([launches, times](const Member& at) -> Checked<Ok> {
    for (std::int64_t i = 0; i < times; ++i) {
      const auto set = static_cast<std::size_t>(i) % launches.size();
      HP_REQUIRE_OK(enqueue(at, launches[set]));
    }
    return Ok{};
  });
}

Checked<Ok> measure(Crew& crew, const std::vector<LeafCase>& cases, double kernel,
                    std::vector<LeafFigure>& figures) {
  std::vector<Trial> trials;
  for (const LeafCase& one : cases) {
    const std::int64_t times = times_of(one.guess, kMostLeafTimes);
    HP_TRY(Trial trial, crew.capture(static_cast<double>(times), [&](const Member& member) {
      return order_of(one, member, times);
    }));
    trials.push_back(std::move(trial));
  }
  HP_TRY(const std::vector<double> seconds, crew.time(trials));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    LeafFigure figure = cases[i].figure;
    figure.seconds = std::max(kLeast, seconds[i] - kernel);
    figures.push_back(std::move(figure));
  }
  return Ok{};
}

}  // namespace

std::vector<std::int64_t> cuts_of(const Crew& crew) {
  if (crew.size() > 1) return {crew.size()};
  return {2, 4, 8};
}

Checked<std::vector<LeafFigure>> measure_leaves(Crew& crew, bool quick, double kernel) {
  const std::vector<std::int64_t> cuts = cuts_of(crew);
  std::vector<LeafFigure> figures;
  HP_REQUIRE_OK(measure(crew, gemm_cases(cuts, quick), kernel, figures));
  HP_REQUIRE_OK(measure(crew, attention_cases(cuts.back(), quick), kernel, figures));
  HP_REQUIRE_OK(measure(crew, plain_cases(quick), kernel, figures));
  return figures;
}

}  // namespace harpe::cuda::profile
