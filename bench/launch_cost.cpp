#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/gpu/group/rank_memory.h"

// The host time of a launch of a group's executable, p50 and p99. Two plans alternate, each with
// several sets of tensors in turn. With more sets than kept graphs, every launch binds its tensors
// anew.
// Usage: launch_cost [ranks that share the GPU [size]].
namespace harpe::ranks_on_gpus {
namespace {

using Clock = std::chrono::steady_clock;

Plan plan_of(const std::string& op, int ranks, std::int64_t size) {
  const v1::Question question{.op = op,
                              .parameters = {{"m", size}, {"n", size}, {"k", size}},
                              .mesh = "tp=" + std::to_string(ranks)};
  if (ranks == 1) return plan(question).value();
  v1::Question push = question;
  push.schedule = "push";
  return plan(push).value();
}

double percentile(std::vector<double>& times, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(times.size() - 1));
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(at));
  return times[at];
}

void measure(int ranks, std::int64_t size, std::size_t sets) {
  constexpr int kLaunches = 4000;
  constexpr int kUnderWay = 32;  // the driver's queue never fills
  const std::vector<Plan> plans = {plan_of("ag_gemm", ranks, size),
                                   plan_of("gemm_rs", ranks, size)};
  run_ranks(ranks, [&](const Group& group, const CallerStream& stream) {
    std::vector<Executable> executables;
    std::vector<std::vector<std::unique_ptr<RankTensors>>> own(plans.size());
    for (std::size_t i = 0; i < plans.size(); ++i) {
      executables.push_back(Executable::make(group, plans[i]).value());
      for (std::size_t set = 0; set < sets; ++set) {
        own[i].push_back(
            std::make_unique<RankTensors>(plans[i], executables[i], group.rank(), stream.handle()));
      }
    }
    std::vector<double> times;
    for (int at = 0; at < 2 * kLaunches; ++at) {
      const auto index = static_cast<std::size_t>(at);
      const std::size_t which = index % plans.size();
      const RankTensors& tensors = *own[which][index / plans.size() % sets];
      const Clock::time_point begin = Clock::now();
      const Checked<Done> done = executables[which].launch(stream.handle(), tensors.arguments());
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      if (!done.ok()) {
        std::fputs(done.error().text.c_str(), stderr);
        std::exit(1);
      }
      if (at >= kLaunches) times.push_back(took.count());
      if (at % kUnderWay == kUnderWay - 1) stream.synchronize();
    }
    if (group.rank() != 0) return;
    std::int64_t copied = 0;
    for (const Executable& each : executables) copied += each.status().copied_bytes;
    std::printf(
        "%d ranks, %lld, %2zu sets: p50 %5.2f us, p99 %6.2f us, %lld bytes copied a launch\n",
        ranks, static_cast<long long>(size), sets, percentile(times, 0.5), percentile(times, 0.99),
        static_cast<long long>(copied / (2 * kLaunches)));
  });
}

}  // namespace
}  // namespace harpe::ranks_on_gpus

int main(int count, char** arguments) {
  using harpe::ranks_on_gpus::measure;
  if (const auto missing = harpe::test::missing_for_gpus()) {
    std::fputs(missing->c_str(), stderr);
    return 77;
  }
  const int ranks = count > 1 ? std::atoi(arguments[1]) : 2;
  const std::int64_t size = count > 2 ? std::atoll(arguments[2]) : 256;
  for (const std::size_t sets : {1, 16, 17}) measure(ranks, size, sets);
  return 0;
}
