#include <memory>

#include "exec/cpu/runner.h"

namespace harpe::cpu {
namespace {

// A thread per lane. Each lane counts the signals raised for it; its thread reads the count, then
// looks at the head's words, and sleeps only while the count is what it read. A signal raised after
// the reading changes the count, one raised before it is seen (release, acquire).
class LaneThreads {
 public:
  LaneThreads(Marking& marking, const CpuOptions& options, Network* network)
      : marking_(marking),
        counts_(std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(marking.lanes()))),
        crew_(marking, options, network, [this] { stop(); }) {}

  RunOutcome run(std::chrono::milliseconds wait_limit) {
    // A lane's state belongs to its thread once it runs: look before the first is started.
    std::vector<std::int32_t> unfinished;
    for (std::int32_t lane = 0; lane < marking_.lanes(); ++lane) {
      if (!marking_.is_finished(lane)) unfinished.push_back(lane);
    }
    for (const std::int32_t lane : unfinished) crew_.start([this, lane] { work(lane); });
    crew_.start_lookout([this](std::int32_t lane) { wake(lane); });
    return crew_.watch(wait_limit);
  }

 private:
  void wake(std::int32_t lane) {
    std::atomic<int>& count = counts_[static_cast<std::size_t>(lane)];
    count.fetch_add(1, std::memory_order_release);
    count.notify_all();
  }

  void stop() {
    stopped_.store(true, std::memory_order_release);
    for (std::int32_t lane = 0; lane < marking_.lanes(); ++lane) wake(lane);
  }

  void work(std::int32_t lane) {
    const Marking::Wake wake_lane = [this](std::int32_t other) { wake(other); };
    std::atomic<int>& count = counts_[static_cast<std::size_t>(lane)];
    while (!marking_.is_finished(lane)) {
      const int seen = count.load(std::memory_order_acquire);
      if (stopped_.load(std::memory_order_acquire)) return;
      if (!marking_.is_ready(lane)) {
        count.wait(seen, std::memory_order_acquire);
      } else if (!crew_.take_step(lane, wake_lane)) {
        return;
      }
    }
  }

  Marking& marking_;
  std::unique_ptr<std::atomic<int>[]> counts_;  // per lane
  std::atomic<bool> stopped_{false};
  Crew crew_;  // last: its threads end before what they use goes
};

}  // namespace

RunOutcome run_threads(Marking& marking, const CpuOptions& options,
                       std::chrono::milliseconds wait_limit, Network* network) {
  return LaneThreads(marking, options, network).run(wait_limit);
}

}  // namespace harpe::cpu
