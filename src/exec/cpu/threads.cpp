#include <memory>

#include "exec/cpu/runner.h"

namespace harpe::cpu {
namespace {

// A thread per queue. Each queue counts the signals raised for it. Its thread reads the count, then
// checks the head's signals, and sleeps only while the count is unchanged. A signal raised after
// that read changes the count; one raised before is seen by the check (release, acquire).
class QueueThreads {
 public:
  QueueThreads(Marking& marking, const CpuOptions& options, Network* network)
      : marking_(marking),
        counts_(std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(marking.queues()))),
        crew_(marking, options, network, [this] { stop(); }) {}

  RunOutcome run(const RunOptions& run) {
    // A running queue's state belongs to its thread: read it before the first thread starts.
    std::vector<std::int32_t> unfinished;
    for (std::int32_t queue = 0; queue < marking_.queues(); ++queue) {
      if (!marking_.is_finished(queue)) unfinished.push_back(queue);
    }
    for (const std::int32_t queue : unfinished) crew_.start([this, queue] { work(queue); });
    crew_.start_lookout([this](std::int32_t queue) { wake(queue); });
    return crew_.watch(run);
  }

 private:
  void wake(std::int32_t queue) {
    std::atomic<int>& count = counts_[static_cast<std::size_t>(queue)];
    count.fetch_add(1, std::memory_order_release);
    count.notify_all();
  }

  void stop() {
    stopped_.store(true, std::memory_order_release);
    for (std::int32_t queue = 0; queue < marking_.queues(); ++queue) wake(queue);
  }

  void work(std::int32_t queue) {
    const Marking::Wake wake_queue = [this](std::int32_t other) { wake(other); };
    std::atomic<int>& count = counts_[static_cast<std::size_t>(queue)];
    while (!marking_.is_finished(queue)) {
      const int seen = count.load(std::memory_order_acquire);
      if (stopped_.load(std::memory_order_acquire)) return;
      if (!marking_.is_ready(queue)) {
        count.wait(seen, std::memory_order_acquire);
      } else if (!crew_.take_step(queue, wake_queue)) {
        return;
      }
    }
  }

  Marking& marking_;
  std::unique_ptr<std::atomic<int>[]> counts_;  // per queue
  std::atomic<bool> stopped_{false};
  Crew crew_;  // last: its threads end before the members they use are destroyed
};

}  // namespace

RunOutcome run_threads(Marking& marking, const CpuOptions& options, const RunOptions& run,
                       Network* network) {
  return QueueThreads(marking, options, network).run(run);
}

}  // namespace harpe::cpu
