#include "tests/support/adversarial_provider.h"

namespace harpe::transport::test {

constexpr std::size_t kRoom = 24;  // small, so that senders meet a full queue

Outcome<Posted> AdversarialProvider::accept(Pending pending) {
  if (pending_.size() >= kRoom) return Posted::Later;
  if (!honoured_.remote_completion) left_.push_back(pending.token);
  pending_.push_back(std::move(pending));
  return Posted::Yes;
}

Outcome<Posted> AdversarialProvider::post(const Write& write) {
  // A flag that is not honoured is ignored, as networks do.
  return accept({.what = {.peer = write.peer, .put = write, .word = write.immediate},
                 .fence = write.fence && honoured_.fence,
                 .token = write.token});
}

Outcome<Posted> AdversarialProvider::post(const SignalWrite& signal) {
  return accept({.what = {.peer = signal.peer, .word = signal.update},
                 .fence = signal.fence && honoured_.fence,
                 .token = signal.token});
}

bool AdversarialProvider::may_go(std::size_t at) const {
  for (std::size_t earlier = 0; earlier < at; ++earlier) {
    if (pending_[earlier].what.peer != pending_[at].what.peer) continue;
    // A fenced operation, and all after it, wait for what is before it.
    if (honoured_.in_order || pending_[at].fence || pending_[earlier].fence) return false;
  }
  return true;
}

Outcome<bool> AdversarialProvider::turn(std::vector<Token>& completed) {
  completed.insert(completed.end(), left_.begin(), left_.end());
  const bool any = !left_.empty();
  left_.clear();
  if (is_cut_ || pending_.empty() || draw_() % 3 == 0) return any;
  std::vector<std::size_t> ready;
  for (std::size_t at = 0; at < pending_.size(); ++at) {
    if (may_go(at)) ready.push_back(at);
  }
  // The newest mostly: what can overtake does.
  const std::size_t chosen = draw_() % 4 == 0 ? ready[draw_() % ready.size()] : ready.back();
  const Pending pending = pending_[chosen];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(chosen));
  if (pending.what.put && pending.what.word) {  // data first, then the signal that came with it
    observe_({.peer = pending.what.peer, .put = pending.what.put});
    observe_({.peer = pending.what.peer, .word = pending.what.word});
  } else {
    observe_(pending.what);
  }
  if (honoured_.remote_completion) completed.push_back(pending.token);
  return true;
}

}  // namespace harpe::transport::test
