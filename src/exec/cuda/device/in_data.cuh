#pragma once

#include "exec/cuda/device/parts.cuh"
#include "exec/cuda/device/wait.cuh"

// Data that serve as their own signals between ranks. As with parts (parts.cuh), memory contains
// kAbsent where no value has arrived, and no stored value equals it. Each 32-bit word is exchanged
// independently, relaxed at system scope; no other data is ordered by it. The reader restores
// kAbsent; the next execution stores there behind the Exit of this one.
namespace harpe::device {

HP_DEVICE void store_in_data(uint4* to, const uint4& values) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(values.x),
               "r"(values.y), "r"(values.z), "r"(values.w)
               : "memory");
}

HP_DEVICE uint4 look_in_data(const uint4* from) {
  uint4 values;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(values.x), "=r"(values.y), "=r"(values.z), "=r"(values.w)
               : "l"(from)
               : "memory");
  return values;
}

// Polls until all four words at `from` have arrived. False if that took longer than the limit, if
// another waiter has failed, or if the host made the rank give up.
HP_DEVICE bool poll_in_data(const WaitContext& context, const FlagWait& wait, const uint4* from) {
  constexpr std::uint64_t kEagerNs = 50000;  // before it asks whether another waiter has failed
  note_awaited(context, wait);
  const std::uint64_t start = global_timer();
  while (is_absent(look_in_data(from))) {
    const std::uint64_t elapsed = global_timer() - start;
    if (elapsed <= kEagerNs) continue;
    const WordPair poison = load_relaxed_system_pair(context.poison);
    if (poison.first != 0) {
      tell_host(context);
      return false;
    }
    if (poison.second != 0 || elapsed > context.limit_ns) {
      const std::uint32_t epoch = current_epoch(context);
      const std::uint32_t state = poison.second != 0 ? kGivenUp : kExpired;
      record_fault(context, wait, epoch, epoch - 1, elapsed, state);
      return false;
    }
  }
  return true;
}

HP_DEVICE void take_in_data(uint4* from) {
  store_in_data(from, make_uint4(kAbsent, kAbsent, kAbsent, kAbsent));
}

}  // namespace harpe::device
