#include "exec/cuda/executor/together.h"

#include <condition_variable>
#include <mutex>

#include "support/threads.h"

namespace harpe::cuda {

std::optional<FirstFailure> run_together(std::size_t count, std::chrono::milliseconds limit,
                                         const std::function<Checked<Ok>(std::size_t)>& body,
                                         const std::function<void()>& give_up) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t over = 0;
  std::optional<FirstFailure> failure;
  Threads threads(count, [&](std::size_t i) {
    const Checked<Ok> done = body(i);
    const std::lock_guard lock(mutex);
    ++over;
    if (!done.ok() && !failure) failure = FirstFailure{.which = i, .why = done.error()};
    changed.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, limit, [&] { return over == count || failure; });
    if (over < count) {
      lock.unlock();
      give_up();
    }
  }
  threads.join();
  return failure;
}

}  // namespace harpe::cuda
