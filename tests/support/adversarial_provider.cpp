#include "tests/support/adversarial_provider.h"

namespace harpe::transport::test {

constexpr std::size_t kRoom = 24;  // small, so that senders find the queue full

Outcome<Posted> AdversarialProvider::accept(Pending pending) {
  if (pending_.size() >= kRoom) return Posted::Later;
  if (!honoured_.remote_completion) left_.push_back(pending.token);
  pending_.push_back(std::move(pending));
  return Posted::Yes;
}

Outcome<Posted> AdversarialProvider::post(const Write& write) {
  // An unsupported fence flag is ignored, as real networks do.
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
    // A fenced operation and all later ones wait for the operations in front of it.
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
  // Usually picks the newest, so that overtaking is common.
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
