#include "tests/support/hasty_provider.h"

#include <algorithm>

namespace harpe::transport::test {

Outcome<Posted> HastyProvider::post(const Write& write) {
  Late late{.due = std::chrono::steady_clock::now() + late_, .write = write};
  late.write.token = kOwn;
  if (write.immediate) {
    // Posts the signal at once, which completes the put; the data follows later.
    HP_TRY(const Posted posted,
           honest_->post(
               SignalWrite{.peer = write.peer, .update = *write.immediate, .token = write.token}));
    if (posted == Posted::Later) return posted;
    late.write.immediate.reset();
  } else {
    done_.push_back(write.token);
  }
  late_writes_.push_back(late);
  return Posted::Yes;
}

Outcome<bool> HastyProvider::turn(std::vector<Token>& completed) {
  const auto now = std::chrono::steady_clock::now();
  while (!late_writes_.empty() && late_writes_.front().due <= now) {
    HP_TRY(const Posted posted, honest_->post(late_writes_.front().write));
    if (posted == Posted::Later) break;
    late_writes_.pop_front();
  }
  completed.insert(completed.end(), done_.begin(), done_.end());
  const bool any = !done_.empty();
  done_.clear();
  HP_TRY(const bool turned, honest_->turn(completed));
  std::erase(completed, kOwn);
  return any || turned;
}

}  // namespace harpe::transport::test
