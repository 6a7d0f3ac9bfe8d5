#pragma once

#include "exec/cuda/device/in_data.cuh"
#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_args.h"
#include "exec/cuda/kernels/gemm/device/gemm_walk.cuh"

// Addends that threads load: what kernels that store by threads have stored here.
namespace harpe::device {

HP_DEVICE RowsAddend addend_of(const GemmKChunk& addend) {
  return {.address = addend.address, .stride = addend.stride, .is_in_data = addend.is_in_data};
}

// Adds a pair of 16-bit values to `low` and `high`.
template <Element kFrom>
HP_DEVICE void add_pair(std::uint32_t pair, float& low, float& high) {
  if constexpr (kFrom == Element::BF16) {
    low += __uint_as_float(pair << 16);
    high += __uint_as_float(pair & 0xffff0000U);
  } else {
    low += widen_f16(pair & 0xffffU);
    high += widen_f16(pair >> 16);
  }
}

template <Element kFrom>
HP_DEVICE void add_eight(const uint4& eight, float4& low, float4& high) {
  add_pair<kFrom>(eight.x, low.x, low.y);
  add_pair<kFrom>(eight.y, low.z, low.w);
  add_pair<kFrom>(eight.z, high.x, high.y);
  add_pair<kFrom>(eight.w, high.z, high.w);
}

template <Element kTo>
HP_DEVICE uint4 pack_eight(const float4& low, const float4& high) {
  return make_uint4(pack<kTo>(low.x, low.y), pack<kTo>(low.z, low.w), pack<kTo>(high.x, high.y),
                    pack<kTo>(high.z, high.w));
}

// Eight columns of a row that a thread adds up.
struct DueEight {
  int panel = -1;  // -1: nothing to store
  int addends = 0;
  int row = 0;  // of the panel
  float4 low;
  float4 high;

  [[nodiscard]] HP_DEVICE uint4* of(const RowsAddend& addend, int column) const {
    return reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(addend.address) +
                                    row * addend.stride + column);
  }
};

// Adds up eights of one warp, all of the same columns. A load may take microseconds while the next
// kernel's weights arrive, so many are in flight: those of one addend, and of the next addend.
// `Addends`: of(panel, addend) is a RowsAddend, and signal_of(panel, addend) its FlagWait.
template <int kEights, Element kIn, class Addends>
class AddendSums {
 public:
  HP_DEVICE AddendSums(const GemmArgs& args, const Addends& addends, int column)
      : args_(args), addends_(addends), column_(column) {}

  // By a whole warp: adds the addends of each eight in order to what it has. False if the wait for
  // an addend failed. Addends that this kernel has stored were stored by the same thread, so they
  // need no fence.
  HP_DEVICE bool add_to(DueEight (&due)[kEights]) const {
    int most = 0;
#pragma unroll
    for (const DueEight& eight : due) most = eight.addends > most ? eight.addends : most;
    most = __reduce_max_sync(kWarp, most);
    Values next = {};
#pragma unroll 1
    for (int addend = -1; addend < most; ++addend) {
      Values values;
#pragma unroll
      for (int i = 0; i < kEights; ++i) values[i] = next[i];
      for_each(due, addend + 1, [&](int i, const RowsAddend& from) {
        next[i] = look_in_data(due[i].of(from, column_));
      });
      if (addend < 0) continue;
      if (!await(due, addend, values)) return false;
      for_each(due, addend, [&](int i, const RowsAddend& from) {
        add_eight<kIn>(values[i], due[i].low, due[i].high);
        if (from.is_in_data == 0) return;
        take_in_data(due[i].of(from, column_));
        note_seen(args_.wait, addends_.signal_of(due[i].panel, addend));
      });
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kWarp = 0xffffffff;
  using Values = uint4[kEights];  // of one addend

  // Loads values in data again until all of the warp have arrived; false if the wait for one
  // failed. Polls of all lanes would delay what they wait for, so one lane polls one value; what
  // has come with it is loaded together then. Another GPU may have stored the values, so all loads
  // are relaxed at system scope and bypass L1.
  HP_DEVICE bool await(const DueEight (&due)[kEights], int addend, Values& values) const {
    for (;;) {
      const uint4* absent = nullptr;
      int panel = 0;
      for_each(due, addend, [&](int i, const RowsAddend& from) {
        if (from.is_in_data == 0 || !is_absent(values[i])) return;
        absent = due[i].of(from, column_);
        panel = due[i].panel;
      });
      const std::uint32_t waiting = __ballot_sync(kWarp, absent != nullptr);
      if (waiting == 0) return true;
      const int first = __ffs(static_cast<int>(waiting)) - 1;
      bool fails = false;
      if (static_cast<int>(threadIdx.x) % 32 == first) {
        fails = !poll_in_data(args_.wait, addends_.signal_of(panel, addend), absent);
      }
      if (__any_sync(kWarp, fails)) return false;
      for_each(due, addend, [&](int i, const RowsAddend& from) {
        if (from.is_in_data == 0 || !is_absent(values[i])) return;
        values[i] = look_in_data(due[i].of(from, column_));
      });
    }
  }

  // Calls visit(index of the eight, addend) for every eight that has this addend.
  template <class Visit>
  HP_DEVICE void for_each(const DueEight (&due)[kEights], int addend, Visit visit) const {
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      if (addend >= due[i].addends) continue;
      visit(i, addends_.of(due[i].panel, addend));
    }
  }

  const GemmArgs& args_;
  const Addends& addends_;
  int column_;
};

// By a consumer's second warp, while the first may still publish: waits for the flags of addends,
// one lane for each addend of a panel.
HP_DEVICE void await_addends(const GemmArgs& args, std::uint32_t& poisoned) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  Waiter waiter(args.wait);
  if (lane == 0) note_idle(args.wait, [] { return true; }, [] { return false; });
  for (int i = 0; i < args.panel_count; ++i) {
    const GemmPanel& panel = panel_of(args, i);
    for (int at = lane; at < panel.addends; at += 32) {
      const int index = panel.first_addend + at;
      const FlagWait& ready = k_chunk_of(args, index).ready;
      if (ready.flag == nullptr || k_chunk_of(args, index).is_in_data != 0) continue;
      note_awaited(args.wait, ready);
      waiter.watch(ready, index);
    }
  }
  __syncwarp();
  if (lane == 0) note_stand(args.wait);
  if (waiter.poisoned()) mark_poisoned(poisoned);
}

}  // namespace harpe::device
