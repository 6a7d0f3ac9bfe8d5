#include "transport/ring.h"

#include <new>
#include <thread>

#include "support/check.h"

namespace harpe::transport {

Ring::Ring(std::size_t capacity)
    : mask_(capacity - 1), own_(std::make_unique<Slot[]>(capacity)), slots_(own_.get()) {
  HP_CHECK(capacity > 0 && (capacity & mask_) == 0, "a ring's capacity is a power of two");
}

Ring::Ring(std::size_t capacity, std::span<std::byte> memory)
    : mask_(capacity - 1), slots_(reinterpret_cast<Slot*>(memory.data())) {
  HP_CHECK(capacity > 0 && (capacity & mask_) == 0, "a ring's capacity is a power of two");
  HP_CHECK(memory.size() >= bytes_for(capacity), "memory for all of the ring");
  for (std::size_t at = 0; at < capacity; ++at) new (slots_ + at) Slot;
  taken_ = &(new (slots_ + capacity) Count)->tickets;
}

std::size_t Ring::bytes_for(std::size_t capacity) {
  return capacity * sizeof(Slot) + sizeof(Count);
}

// A thread that has seen a descriptor published expects it to be counted, though slots of other
// writers before it may still be empty. So the last published slot counts, not the first empty one.
Ticket Ring::reserved() const {
  if (own_ != nullptr) return reserved_.load(std::memory_order_acquire);
  const Ticket from = taken();
  for (Ticket end = from + capacity(); end > from; --end) {
    if (is_there(end - 1)) return end;
  }
  return from;
}

std::optional<Ticket> Ring::try_push(const Words& words) {
  HP_CHECK(own_ != nullptr, "kernels alone write to a ring of theirs");
  Ticket ticket = reserved_.load(std::memory_order_relaxed);
  do {
    // Acquire: the reader has read the slot's previous lap before it is overwritten. Signed,
    // because since `ticket` was loaded others may have pushed and the reader taken slots; the
    // exchange then fails.
    const auto used = static_cast<std::int64_t>(ticket - taken_->load(std::memory_order_acquire));
    if (used >= static_cast<std::int64_t>(capacity())) return std::nullopt;
  } while (!reserved_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed));
  Slot& target = slot(ticket);
  for (std::size_t at = 1; at < words.size(); ++at) {
    target.words[at].store(words[at], std::memory_order_relaxed);
  }
  target.words[0].store((words[0] & ~kPhaseBit) | phase_of(ticket), std::memory_order_release);
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
  const Ticket ticket = taken_->load(std::memory_order_relaxed);
  const Slot& source = slot(ticket);
  Words words;
  words[0] = source.words[0].load(std::memory_order_acquire);
  if ((words[0] & kPhaseBit) != phase_of(ticket)) return std::nullopt;
  for (std::size_t at = 1; at < words.size(); ++at) {
    words[at] = source.words[at].load(std::memory_order_relaxed);
  }
  taken_->store(ticket + 1, std::memory_order_release);
  return words;
}

}  // namespace harpe::transport
