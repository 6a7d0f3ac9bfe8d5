#include <algorithm>
#include <memory>
#include <random>

#include "exec/cpu/runner.h"

namespace harpe::cpu {
namespace {

// Workers that run the heads of ready queues.
//
// Each queue has a token. Bit kOwned: the queue is in the ring or held by a worker, hence in at
// most one place; the thread that set the bit is responsible for it. Bit kPending: a signal was
// raised for it since its worker last looked.
//
// No wake-up is lost. A signaller raises the signal, then does fetch_or(kOwned | kPending). A
// worker clears kPending, checks the head's signals, and if one is not raised tries to change
// kOwned to 0. These are read-modify-writes of one atomic, hence totally ordered. If the
// signaller's comes
//   before the worker's clearing: the worker then reads the raised signal (release, acquire);
//   between clearing and leaving: leaving fails, since kPending is set, and the worker retries;
//   after leaving: it finds kOwned clear, so the signaller itself puts the queue into the ring.
// (With a plain load in place of the signaller's fetch_or a stale kOwned could be read after the
// worker left: store signal, load token against store token, load signal.)
class Pool {
 public:
  Pool(Marking& marking, const CpuOptions& options, Network* network)
      : marking_(marking),
        tokens_(std::make_unique<std::atomic<std::uint32_t>[]>(
            static_cast<std::size_t>(marking.queues()))),
        ready_(static_cast<std::size_t>(marking.queues())),
        crew_(marking, options, network, [this] { close(); }) {
    if (options.delay_seed) random_.emplace(*options.delay_seed);
  }

  RunOutcome run(int workers, const RunOptions& run) {
    if (crew_.is_over()) return {.finished = true};
    for (std::int32_t queue = 0; queue < marking_.queues(); ++queue) {
      if (!marking_.is_finished(queue)) wake(queue);
    }
    for (int i = 0; i < workers; ++i) crew_.start([this] { work(); });
    crew_.start_lookout([this](std::int32_t queue) { wake(queue); });
    return crew_.watch(run);
  }

 private:
  static constexpr std::uint32_t kOwned = 1;
  static constexpr std::uint32_t kPending = 2;

  void wake(std::int32_t queue) {
    std::atomic<std::uint32_t>& token = tokens_[static_cast<std::size_t>(queue)];
    const std::uint32_t old = token.fetch_or(kOwned | kPending, std::memory_order_acq_rel);
    if ((old & kOwned) != 0) return;
    {
      const std::lock_guard lock(mutex_);
      at(waiting_++) = queue;
    }
    filled_.notify_one();
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    stopped_.store(true, std::memory_order_relaxed);
    filled_.notify_all();
  }

  std::int32_t& at(std::size_t i) { return ready_[(first_ + i) % ready_.size()]; }

  // The next queue, or -1 if the pool is closed. In order of arrival; with a seed in random order.
  std::int32_t take() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return closed_ || waiting_ > 0; });
    if (closed_) return -1;
    if (random_) std::swap(at(0), at((*random_)() % waiting_));
    const std::int32_t queue = at(0);
    first_ = (first_ + 1) % ready_.size();
    --waiting_;
    return queue;
  }

  void work() {
    const Marking::Wake wake_queue = [this](std::int32_t queue) { wake(queue); };
    for (std::int32_t queue = take(); queue >= 0; queue = take()) {
      if (!serve(queue, wake_queue)) return;
    }
  }

  // Runs the queue's heads until one must wait. False: this worker is lost.
  bool serve(std::int32_t queue, const Marking::Wake& wake_queue) {
    std::atomic<std::uint32_t>& token = tokens_[static_cast<std::size_t>(queue)];
    for (bool left = false; !left;) {
      token.fetch_and(~kPending, std::memory_order_acq_rel);
      while (!marking_.is_finished(queue) && marking_.is_ready(queue)) {
        if (stopped_.load(std::memory_order_relaxed)) return true;
        if (!crew_.take_step(queue, wake_queue)) return false;
        if (crew_.is_over()) close();
      }
      std::uint32_t expected = kOwned;
      left = token.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
    }
    return true;
  }

  Marking& marking_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> tokens_;  // per queue
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;
  std::condition_variable filled_;
  // Guarded by mutex_: a ring of the queues that wait for a worker, each at most once.
  std::vector<std::int32_t> ready_;
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
  bool closed_ = false;
  std::optional<std::mt19937_64> random_;

  Crew crew_;  // last: its threads end before the members they use are destroyed
};

}  // namespace

RunOutcome run_pool(Marking& marking, const CpuOptions& options, const RunOptions& run,
                    Network* network) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int wanted = options.workers > 0 ? options.workers : cores;
  return Pool(marking, options, network).run(std::clamp(marking.queues(), 1, wanted), run);
}

}  // namespace harpe::cpu
