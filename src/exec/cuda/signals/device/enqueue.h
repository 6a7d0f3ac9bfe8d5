#pragma once

#include "exec/cuda/device/types.h"
#include "transport/descriptor_layout.h"

// How a kernel writes descriptors into a ring that a proxy reads (transport/ring.h): lock-free,
// word 0 last. Tests run the same code on the host, in host memory.
namespace harpe::device {

// One ring from the view of its writers, the threads of one GPU.
struct RingView {
  transport::RingSlot* slots;  // in pinned host memory, like the next
  const std::uint64_t* taken;  // by the proxy
  std::uint64_t* head;         // number of slots that writers took; in GPU memory, like the next
  std::uint64_t* known;        // `taken` as a writer last read it: saves reads of host memory
  std::uint64_t capacity;      // a power of two
};

// `Memory` provides the operations used here, and `keep_waiting`, which limits the wait. False if
// there was no space in time: the slot stays taken and empty, so the proxy reads no further.
template <class Memory>
HP_DEVICE bool await_room(const RingView& ring, std::uint64_t ticket, Memory& memory) {
  const auto has_room = [&](std::uint64_t taken) {
    // Signed, because other writers may have seen more taken than this ticket.
    return static_cast<std::int64_t>(ticket - taken) < static_cast<std::int64_t>(ring.capacity);
  };
  if (has_room(memory.load_known(ring.known))) return true;
  while (true) {
    const std::uint64_t taken = memory.load_taken(ring.taken);
    if (has_room(taken)) {
      memory.store_known(ring.known, taken);
      return true;
    }
    if (!memory.keep_waiting(ticket, taken)) return false;
  }
}

// Publishes (release) the descriptor, and all that this thread wrote or acquired before, to the
// reader of the ring. Word 0 is passed without its phase bit.
template <class Memory>
HP_DEVICE bool enqueue(const RingView& ring, const std::uint64_t* words, Memory& memory) {
  const std::uint64_t ticket = memory.take(ring.head);
  if (!await_room(ring, ticket, memory)) return false;
  std::uint64_t* const slot = ring.slots[ticket & (ring.capacity - 1)].words;
  for (int at = 1; at < transport::kDescriptorWords; ++at) memory.store(slot + at, words[at]);
  const std::uint64_t phase = ((ticket / ring.capacity) & 1) ^ 1;
  memory.publish(slot, words[0] | phase);
  return true;
}

}  // namespace harpe::device
