#include <array>

#include "exec/actions/action.h"
#include "exec/cuda/profile/measure.h"
#include "exec/cuda/profile/orders.h"

namespace harpe::cuda::profile {
namespace {

constexpr std::chrono::seconds kWait{5};
constexpr std::int64_t kMostTimes = kPageSignals / 2;  // two signals each

struct Kind {
  Pattern pattern;
  std::int64_t bytes;  // of one rank
};

// Bytes that a rank reads from each other rank.
std::int64_t part_of(const Kind& kind, int size) {
  constexpr std::int64_t kAlign = 128;
  if (kind.pattern == Pattern::AllGather) return kind.bytes;
  return std::max<std::int64_t>(kAlign, kind.bytes / size / kAlign * kAlign);
}

// sums += values at `from`, in f32.
Checked<LaunchSpec> sum_spec(const Member& member, DeviceAddress to, DeviceAddress from,
                             std::int64_t bytes) {
  const std::vector<std::int64_t> lengths = {bytes / size_in_bytes(DType::F32)};
  const std::vector<std::vector<std::int64_t>> strides = {{1}, {1}};
  actions::Add sum;
  sum.to.data = reinterpret_cast<std::byte*>(to);
  sum.from.data = reinterpret_cast<std::byte*>(from);
  sum.rows = actions::Rows(lengths, strides);
  HP_TRY(LaunchSpecs specs, plan_launches(choice_of(member), sum));
  return specs.front();
}

// The pulls of one rank: its own part first, then from the next rank round to the previous one.
// Sums start with the rank's own part.
Checked<SharedLaunches> pulls_of(const Crew& crew, const Member& member, const Kind& kind) {
  const std::int64_t part = part_of(kind, crew.size());
  const bool sums = kind.pattern == Pattern::ReduceScatter;
  LaunchSpecs specs;
  for (int step = 0; step < crew.size(); ++step) {
    const Member& peer = crew.member((member.rank + step) % crew.size());
    const std::int64_t at = kind.pattern == Pattern::AllGather ? 0 : part * member.rank;
    const DeviceAddress from = peer.source + static_cast<DeviceAddress>(at);
    const DeviceAddress to =
        member.target + static_cast<DeviceAddress>(sums ? 0 : part * peer.rank);
    if (sums && step > 0) {
      HP_TRY(LaunchSpec spec, sum_spec(member, to, from, part));
      specs.push_back(std::move(spec));
    } else {
      HP_TRY(LaunchSpec spec, copy_spec(member, Way::Kernel, to, from, part));
      specs.push_back(std::move(spec));
    }
  }
  return make_ready(member, specs);
}

// Raises the signal for all other ranks and waits for theirs.
Checked<Ok> meet(Crew& crew, const Member& member, std::int32_t signal) {
  const SignalAddresses own = crew.peers().signals(member.rank);
  std::vector<device::RaiseTarget> targets;
  for (int rank = 0; rank < crew.size(); ++rank) {
    if (rank != member.rank) targets.push_back(counter_of(crew.peers().signals(rank), signal));
  }
  const auto others = static_cast<std::uint32_t>(crew.size() - 1);
  const device::WaitContext context = crew.peers().page(member.rank).context(kWait);
  HP_REQUIRE_OK(checked(member.signals->raise(member.queue(), own, targets)));
  return checked(
      member.signals->await(member.queue(), context, std::array{wait_on(own, signal, others)}));
}

Checked<Order> collective_of(Crew& crew, const Member& member, const Kind& kind,
                             std::int64_t times) {
  HP_TRY(const SharedLaunches pulls, pulls_of(crew, member, kind));
  return Order([&crew, pulls, times](const Member& at) -> Checked<Ok> {
    const device::WaitContext context = crew.peers().page(at.rank).context(kWait);
    HP_REQUIRE_OK(
        checked(at.signals->begin_epoch(at.queue(), crew.peers().signals(at.rank), context)));
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(times); ++i) {
      HP_REQUIRE_OK(meet(crew, at, 2 * i));
      HP_REQUIRE_OK(enqueue(at, pulls));
      HP_REQUIRE_OK(meet(crew, at, 2 * i + 1));
    }
    return Ok{};
  });
}

std::vector<Kind> kinds_of(int size, bool quick) {
  std::vector<Kind> kinds;
  for (const Pattern pattern : {Pattern::AllGather, Pattern::AllToAll, Pattern::ReduceScatter}) {
    for (const std::int64_t bytes : collective_sizes(quick)) {
      const bool gathers = pattern == Pattern::AllGather;
      if (!gathers || bytes * size <= kTargetBytes) kinds.push_back({pattern, bytes});
    }
  }
  return kinds;
}

}  // namespace

std::vector<std::int64_t> collective_sizes(bool quick) {
  if (quick) return {64 << 10, 8 << 20};
  return {16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 32 << 20, 256 << 20};
}

Checked<std::vector<TimedCollective>> measure_collectives(Crew& crew, bool quick) {
  constexpr double kGuess = 250e9;
  const std::vector<Kind> kinds = kinds_of(crew.size(), quick);
  std::vector<Trial> trials;
  for (const Kind& kind : kinds) {
    const double pulled =
        static_cast<double>(part_of(kind, crew.size())) * static_cast<double>(crew.size() - 1);
    const std::int64_t times = times_of(20e-6 + pulled / kGuess, kMostTimes);
    HP_TRY(Trial trial, crew.capture(static_cast<double>(times), [&](const Member& member) {
      return collective_of(crew, member, kind, times);
    }));
    trials.push_back(std::move(trial));
  }
  HP_TRY(const std::vector<double> seconds, crew.time(trials));
  std::vector<TimedCollective> figures;
  figures.reserve(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    figures.push_back({kinds[i].pattern, static_cast<double>(kinds[i].bytes), seconds[i]});
  }
  return figures;
}

}  // namespace harpe::cuda::profile
