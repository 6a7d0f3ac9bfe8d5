#include "profile/profile_crew.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <numeric>
#include <thread>
#include <vector>

#include "measure/statistics.h"
#include "support/threads.h"

namespace harpe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Seconds of each call within the budget; at least three calls.
std::vector<double> time_calls(const ProfileBody& body, std::chrono::milliseconds budget) {
  std::vector<double> calls;
  Clock::time_point before = Clock::now();
  const Clock::time_point deadline = before + budget;
  do {
    body();
    const Clock::time_point after = Clock::now();
    calls.push_back(seconds(after - before));
    before = after;
  } while (before < deadline || calls.size() < 3);
  return calls;
}

}  // namespace

double ProfileCrew::seconds_per_call(
    const std::function<ProfileBody(std::int64_t rank)>& make) const {
  std::barrier together(static_cast<std::ptrdiff_t>(ranks));
  std::vector<double> results(static_cast<std::size_t>(ranks));
  run_in_threads(results.size(), [&](std::size_t rank) {
    const ProfileBody body = make(static_cast<std::int64_t>(rank));
    body();
    together.arrive_and_wait();
    const std::vector<double> calls = time_calls(body, budget);
    const double mean =
        std::accumulate(calls.begin(), calls.end(), 0.0) / static_cast<double>(calls.size());
    results[rank] = ranks > cores ? mean : quantile(calls, 0.25);
    together.arrive_and_wait();  // operands live as long as any rank may read them
  });
  return quantile(results, 0.5);
}

double seconds_per_signal(std::chrono::milliseconds budget) {
  constexpr int kBatch = 200;
  std::atomic<std::int64_t> there{0};
  std::atomic<std::int64_t> back{0};
  std::atomic<bool> over{false};
  const auto wait_for = [](const std::atomic<std::int64_t>& word, std::int64_t value,
                           const std::atomic<bool>& stop) {
    while (word.load(std::memory_order_acquire) < value) {
      if (stop.load(std::memory_order_relaxed)) return;
      std::this_thread::yield();
    }
  };
  std::jthread answering = start_thread([&] {
    for (std::int64_t i = 1; !over.load(std::memory_order_relaxed); ++i) {
      wait_for(there, i, over);
      back.store(i, std::memory_order_release);
    }
  });
  std::int64_t sent = 0;
  const std::atomic<bool> never{false};
  const std::vector<double> batches = time_calls(
      [&] {
        for (int i = 0; i < kBatch; ++i) {
          there.store(++sent, std::memory_order_release);
          wait_for(back, sent, never);
        }
      },
      budget);
  over.store(true);
  answering.join();
  return quantile(batches, 0.25) / (2 * kBatch);
}

}  // namespace harpe
