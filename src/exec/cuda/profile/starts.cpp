#include <algorithm>
#include <chrono>

#include "exec/cuda/profile/measure.h"
#include "exec/cuda/profile/orders.h"
#include "exec/cuda/runtime/current_device.h"

namespace harpe::cuda::profile {
namespace {

constexpr std::int64_t kSmall = 16;        // bytes that a small kernel copies
constexpr std::int64_t kKernels = 2048;    // in sequence
constexpr std::int32_t kRoundTrips = 500;  // of signals; each uses its own signal in either page
constexpr std::chrono::seconds kStartsWait{5};

static_assert(kRoundTrips <= kPageSignals);

Checked<SharedLaunches> small_kernel(const Member& member) {
  HP_TRY(const LaunchSpec spec,
         copy_spec(member, Way::Kernel, member.target, member.source, kSmall));
  return make_ready(member, {spec});
}

// In one stream.
Checked<Order> row_of_kernels(const Member& member) {
  HP_TRY(const SharedLaunches kernel, small_kernel(member));
  return Order([kernel](const Member& at) { return enqueue(at, kernel, kKernels); });
}

// In two streams, each of which waits for the other's kernel after every one of its own.
Checked<Order> crossing_kernels(const Member& member) {
  HP_TRY(const SharedLaunches kernel, small_kernel(member));
  return Order([kernel](const Member& at) -> Checked<Ok> {
    HP_REQUIRE_OK(fork(at, 2));
    HP_TRY(const Event first, Event::create_untimed(*at.device));
    HP_TRY(const Event second, Event::create_untimed(*at.device));
    for (std::int64_t i = 0; i < kKernels; ++i) {
      HP_REQUIRE_OK(enqueue(at, kernel, 1, 0));
      HP_REQUIRE_OK(enqueue(at, kernel, 1, 1));
      HP_REQUIRE_OK(checked(first.record(at.queue(0))));
      HP_REQUIRE_OK(checked(second.record(at.queue(1))));
      HP_REQUIRE_OK(checked(at.queue(0).wait_for(second)));
      HP_REQUIRE_OK(checked(at.queue(1).wait_for(first)));
    }
    return join(at, 2);
  });
}

// Pairs of GPUs raise flags for each other in turn. A GPU without a partner does nothing.
Checked<Order> signals_of_pairs(Crew& crew, const Member& member) {
  const int partner = member.rank ^ 1;
  if (partner >= crew.size()) return Order();
  const device::WaitContext context = crew.peers().page(member.rank).context(kStartsWait);
  const SignalAddresses own = crew.peers().signals(member.rank);
  const SignalAddresses other = crew.peers().signals(partner);
  return Order([=](const Member& at) -> Checked<Ok> {
    const auto raise = [&](std::int32_t signal) {
      return at.signals->raise(at.queue(), own, std::array{flag_of(other, signal)});
    };
    const auto await = [&](std::int32_t signal) {
      return at.signals->await(at.queue(), context, std::array{wait_on(own, signal)});
    };
    HP_REQUIRE_OK(checked(at.signals->begin_epoch(at.queue(), own, context)));
    for (std::int32_t signal = 0; signal < kRoundTrips; ++signal) {
      if (at.rank < partner) HP_REQUIRE_OK(checked(raise(signal)));
      HP_REQUIRE_OK(checked(await(signal)));
      if (at.rank > partner) HP_REQUIRE_OK(checked(raise(signal)));
    }
    return Ok{};
  });
}

// Host time per launch without a graph.
Checked<double> time_issue(const Member& member) {
  constexpr int kTrials = 9;
  constexpr std::int64_t kLaunches = 256;  // fits into the driver's queue
  const CurrentDevice current(*member.device);
  HP_TRY(const SharedLaunches kernel, small_kernel(member));
  std::vector<double> seconds;
  for (int i = 0; i < kTrials; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    HP_REQUIRE_OK(enqueue(member, kernel, kLaunches));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    HP_REQUIRE_OK(checked(member.queue().synchronize()));
    seconds.push_back(took.count() / static_cast<double>(kLaunches));
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace

Checked<StartFigures> measure_starts(Crew& crew) {
  std::vector<Trial> trials;
  HP_TRY(Trial row, crew.capture(kKernels, row_of_kernels));
  HP_TRY(Trial crossing, crew.capture(kKernels, crossing_kernels));
  trials.push_back(std::move(row));
  trials.push_back(std::move(crossing));
  if (crew.size() > 1) {
    HP_TRY(Trial signals, crew.capture(2 * kRoundTrips, [&](const Member& member) {
      return signals_of_pairs(crew, member);
    }));
    trials.push_back(std::move(signals));
  }
  HP_TRY(const std::vector<double> seconds, crew.time(trials));
  StartFigures figures;
  figures.kernel = seconds[0];
  figures.event = std::max(0.0, seconds[1] - seconds[0]);
  if (crew.size() > 1) figures.signal = seconds[2];
  HP_TRY(figures.issue, time_issue(crew.member(0)));
  const DeviceFacts& facts = crew.member(0).device->facts();
  figures.memory_bytes = static_cast<double>(crew.free_bytes());
  figures.cache_bytes = static_cast<double>(facts.cache_bytes);
  figures.multiprocessors = facts.multiprocessors;
  return figures;
}

}  // namespace harpe::cuda::profile
