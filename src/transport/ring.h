#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "transport/deadline.h"
#include "transport/descriptor.h"

namespace harpe::transport {

using Ticket = std::uint64_t;  // within one ring, from 0, in the order of taken slots

// Descriptors in flight to the proxy: many writers, one reader, lock-free. A slot is published by
// its word 0, stored last with release. Its phase bit flips each lap, so neither side needs the
// other's position to recognise new slots. A writer takes a slot by compare-and-exchange only if
// there is room, so a writer that gives up has taken nothing.
class Ring {
 public:
  // Requires: a power of two.
  explicit Ring(std::size_t capacity);
  // In memory that a GPU's kernels access; only kernels write descriptors
  // (exec/cuda/signals/device/enqueue.h), and `push` must not be called. Layout: the slots, then
  // the count of taken ones. Requires: `memory` of `bytes_for`, aligned to 64 bytes, that outlives
  // the ring.
  Ring(std::size_t capacity, std::span<std::byte> memory);
  [[nodiscard]] static std::size_t bytes_for(std::size_t capacity);

  // None while the ring is full.
  [[nodiscard]] std::optional<Ticket> try_push(const Words& words);
  // Waits for room; none if the deadline passes.
  [[nodiscard]] std::optional<Ticket> push(const Words& words, Deadline deadline);

  // For the reader: the next descriptor, whose slot becomes free, or none.
  [[nodiscard]] std::optional<Words> pop();

  // All lower tickets are complete on the other rank. The reader stores it with release.
  [[nodiscard]] Ticket completed() const { return completed_.load(std::memory_order_acquire); }
  void set_completed(Ticket below) { completed_.store(below, std::memory_order_release); }
  // The sources of all lower tickets may be overwritten.
  [[nodiscard]] Ticket sent() const { return sent_.load(std::memory_order_acquire); }
  void set_sent(Ticket below) { sent_.store(below, std::memory_order_release); }
  [[nodiscard]] Ticket taken() const { return taken_->load(std::memory_order_acquire); }
  // The end of the slots that writers have taken; their descriptors may still be in flight. For
  // kernels: the end of the published descriptors.
  [[nodiscard]] Ticket reserved() const;
  [[nodiscard]] std::size_t capacity() const { return mask_ + 1; }

 private:
  struct alignas(64) Slot {
    std::array<std::atomic<std::uint64_t>, kDescriptorWords> words{};
  };
  static_assert(sizeof(Slot) == sizeof(RingSlot));
  struct alignas(64) Count {
    std::atomic<Ticket> tickets{0};
  };

  [[nodiscard]] std::uint64_t phase_of(Ticket ticket) const {
    return ((ticket / capacity()) & 1) ^ 1;
  }
  [[nodiscard]] Slot& slot(Ticket ticket) const { return slots_[ticket & mask_]; }
  [[nodiscard]] bool is_there(Ticket ticket) const {
    return (slot(ticket).words[0].load(std::memory_order_acquire) & kPhaseBit) == phase_of(ticket);
  }

  std::size_t mask_;
  std::unique_ptr<Slot[]> own_;  // null if kernels write
  Slot* slots_;
  Count own_taken_;
  std::atomic<Ticket>* taken_ = &own_taken_.tickets;
  alignas(64) std::atomic<Ticket> reserved_{0};
  std::atomic<Ticket> completed_{0};
  std::atomic<Ticket> sent_{0};
};

}  // namespace harpe::transport
