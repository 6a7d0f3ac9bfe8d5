#include "transport/ring.h"

#include <thread>

#include "support/check.h"

namespace harpe::transport {

Ring::Ring(std::size_t capacity) : mask_(capacity - 1), slots_(std::make_unique<Slot[]>(capacity)) {
  HP_CHECK(capacity > 0 && (capacity & mask_) == 0, "a ring's capacity is a power of two");
}

std::optional<Ticket> Ring::try_push(const Words& words) {
  Ticket ticket = reserved_.load(std::memory_order_relaxed);
  do {
    // Acquire: the reader has read the slot's last lap before it is written again. Signed, because
    // others may have pushed, and the reader taken, since `ticket` was read; then the exchange
    // fails.
    const auto used = static_cast<std::int64_t>(ticket - taken_.load(std::memory_order_acquire));
    if (used >= static_cast<std::int64_t>(capacity())) return std::nullopt;
  } while (!reserved_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed));
  Slot& slot = slots_[ticket & mask_];
  for (std::size_t at = 1; at < words.size(); ++at) {
    slot.words[at].store(words[at], std::memory_order_relaxed);
  }
  slot.words[0].store((words[0] & ~kPhaseBit) | phase_of(ticket), std::memory_order_release);
  return ticket;
}

std::optional<Ticket> Ring::push(const Words& words, Deadline deadline) {
  while (true) {
    if (const auto ticket = try_push(words)) return ticket;
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::yield();
  }
}

std::optional<Words> Ring::pop() {
  const Ticket ticket = taken_.load(std::memory_order_relaxed);
  Slot& slot = slots_[ticket & mask_];
  Words words;
  words[0] = slot.words[0].load(std::memory_order_acquire);
  if ((words[0] & kPhaseBit) != phase_of(ticket)) return std::nullopt;
  for (std::size_t at = 1; at < words.size(); ++at) {
    words[at] = slot.words[at].load(std::memory_order_relaxed);
  }
  taken_.store(ticket + 1, std::memory_order_release);
  return words;
}

}  // namespace harpe::transport
