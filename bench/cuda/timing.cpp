#include "bench/cuda/timing.h"

#include <algorithm>

#include "bench/cuda/kernels.h"

namespace harpe::bench {
namespace {

constexpr std::int64_t kFlushBytes = std::int64_t{256} << 20;  // five times the L2 cache
constexpr int kWarmUps = 3;
constexpr std::uint64_t kHeadStartNs = 2'000'000;  // head start of the host

}  // namespace

Timing summarise(std::vector<double> microseconds) {
  if (microseconds.empty()) return {};
  std::ranges::sort(microseconds);
  const auto at = [&](std::size_t quarter) {
    return microseconds[std::min(microseconds.size() * quarter / 4, microseconds.size() - 1)];
  };
  return {.median_us = at(2), .least_us = microseconds.front(), .spread = (at(3) - at(1)) / at(2)};
}

Stopwatch::Stopwatch(Gpu& gpu)
    : gpu_(&gpu), flush_(gpu.memory(kFlushBytes)), stream_(gpu.new_stream()) {}

std::vector<Stopwatch::Lap> Stopwatch::run_round(const std::vector<Contender>& contenders,
                                                 int round, int sets) const {
  std::vector<Lap> laps(contenders.size());
  for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
    // Another contender starts each round.
    const std::size_t who = (turn + static_cast<std::size_t>(round)) % contenders.size();
    Lap& lap = laps[who];
    lap = {.begin = gpu_->new_event(), .end = gpu_->new_event()};
    if (contenders[who].prepare) contenders[who].prepare(stream_);
    gpu_->fill_words(flush_.address(), static_cast<std::uint32_t>(round), kFlushBytes / 4, stream_);
    gpu_->record(lap.begin, stream_);
    contenders[who].call(round % sets, stream_);
    gpu_->record(lap.end, stream_);
  }
  return laps;
}

std::vector<Timing> Stopwatch::time(const std::vector<Contender>& contenders, int rounds,
                                    int sets) const {
  spin(*gpu_, kHeadStartNs, stream_);
  std::vector<std::vector<Lap>> all;
  for (int round = 0; round < kWarmUps + rounds; ++round) {
    all.push_back(run_round(contenders, round, sets));
  }
  gpu_->synchronise(stream_);
  std::vector<Timing> timings;
  for (std::size_t who = 0; who < contenders.size(); ++who) {
    std::vector<double> laps;
    for (std::size_t round = kWarmUps; round < all.size(); ++round) {
      laps.push_back(gpu_->elapsed_us(all[round][who].begin, all[round][who].end));
    }
    timings.push_back(summarise(std::move(laps)));
  }
  return timings;
}

}  // namespace harpe::bench
