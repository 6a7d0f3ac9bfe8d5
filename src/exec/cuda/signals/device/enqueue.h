#pragma once

#include "exec/cuda/device/types.h"
#include "transport/descriptor_layout.h"

// How a kernel writes descriptors into a ring that a proxy reads (transport/ring.h): without locks,
// word 0 last. Tests run the same on the host, in memory of its own.
namespace harpe::device {

// One ring as its writers, the threads of one GPU, see it.
struct RingView {
  transport::RingSlot* slots;  // in pinned memory of the host, like the next
  const std::uint64_t* taken;  // by the proxy
  std::uint64_t* head;         // slots that writers took; in the GPU's memory, like the next
  std::uint64_t* known;        // `taken` as a writer saw it, so that not all go to the host for it
  std::uint64_t capacity;      // a power of two
};

// `Memory` has the operations that are named here, and `keep_waiting`, which says for how long.
// False where there was no room in time: the slot stays taken and empty, so nobody reads further.
template <class Memory>
HP_DEVICE bool await_room(const RingView& ring, std::uint64_t ticket, Memory& memory) {
  const auto has_room = [&](std::uint64_t taken) {
    // Signed: others may have seen more taken than this ticket.
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

// Publishes the descriptor, and all that this thread wrote or acquired before, to who reads the
// ring. Word 0 comes without a phase.
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
