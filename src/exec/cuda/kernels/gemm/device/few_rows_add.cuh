#pragma once

#include "exec/cuda/kernels/gemm/device/few_rows_store.cuh"

// The end of a kernel for few rows whose panels have addends: adds what other ranks stored here to
// the sums that the kernel kept, and stores the totals.
namespace harpe::device {

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

// Adds up a strip. A load may take microseconds while the next kernel's weights arrive, so many are
// in flight: those of the sums that the kernel kept, of one addend, and of the next addend.
template <GemmConfig kConfig>
class AddendSums {
 public:
  HP_DEVICE AddendSums(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int column)
      : args_(args), shared_(shared), column_(column) {}

  // By a whole warp: adds the addends of the strip's panel in order to the kept sums, or for a
  // panel without its own sums to nothing, and stores the totals. Addends that this kernel has
  // stored were stored by the same thread, so they need no fence.
  HP_DEVICE void run(int strip, const Eights<kConfig>& eights) const {
    DueEight due[kEights];
    begin(strip, eights, due);
    if (!add_all(due)) {
      mark_poisoned(shared_.control().poisoned);
      return;
    }
#pragma unroll
    for (const DueEight& eight : due) {
      if (eight.panel < 0) continue;
      store_eight<kConfig>(args_, shared_.panel(eight.panel), eight.row, column_, eight.low,
                           eight.high);
    }
  }

 private:
  static constexpr std::uint32_t kWarp = 0xffffffff;
  static constexpr int kEights = Eights<kConfig>::kCount;
  using Values = uint4[kEights];  // of one addend

  HP_DEVICE void begin(int strip, const Eights<kConfig>& eights, DueEight (&due)[kEights]) const {
    if (column_ >= args_.n) return;
    for_each_panel(args_, shared_, strip, [&](int index, const RowsPanel& panel, int first_row) {
      if (panel.addends == 0) return;
#pragma unroll
      for (int i = 0; i < kEights; ++i) {
        const int row = eights.row(i);
        if (first_row + row >= panel.rows) continue;
        due[i].panel = index;
        due[i].addends = panel.addends;
        due[i].row = first_row + row;
        due[i].low = make_float4(-0.0F, -0.0F, -0.0F, -0.0F);  // the neutral element of addition
        due[i].high = due[i].low;
        if (panel.rows_of >= 0) continue;
        const float4* const kept =
            kept_at<kConfig>(args_, strip * GemmConfig::kRowAlign + row, column_);
        due[i].low = kept[0];
        due[i].high = kept[1];
      }
    });
  }

  // False if the wait for an addend failed.
  HP_DEVICE bool add_all(DueEight (&due)[kEights]) const {
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
        add_eight<kConfig.in>(values[i], due[i].low, due[i].high);
        if (from.is_in_data == 0) return;
        take_in_data(due[i].of(from, column_));
        note_seen(args_.wait, signal_of(due[i].panel, addend));
      });
    }
    return true;
  }

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
        fails = !poll_in_data(args_.wait, signal_of(panel, addend), absent);
      }
      if (__any_sync(kWarp, fails)) return false;
      for_each(due, addend, [&](int i, const RowsAddend& from) {
        if (from.is_in_data == 0 || !is_absent(values[i])) return;
        values[i] = look_in_data(due[i].of(from, column_));
      });
    }
  }

  [[nodiscard]] HP_DEVICE const FlagWait& signal_of(int panel, int addend) const {
    return k_chunk_of(args_, shared_.panel(panel).first_addend + addend).ready;
  }

  // Calls visit(index of the eight, addend) for every eight that has this addend.
  template <class Visit>
  HP_DEVICE void for_each(const DueEight (&due)[kEights], int addend, Visit visit) const {
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      if (addend >= due[i].addends) continue;
      visit(i, shared_.addend(args_, shared_.panel(due[i].panel), addend));
    }
  }

  const GemmArgs& args_;
  const FewRowsShared<kConfig>& shared_;
  int column_;
};

// By a consumer's second warp, while the first may still publish: waits for the flags of addends,
// one lane for each addend of a panel.
template <GemmConfig kConfig>
HP_DEVICE void await_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
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
  if (waiter.poisoned()) mark_poisoned(shared.control().poisoned);
}

// Stores the panels with addends, after the stream has stored all panels without. Ranks that add up
// what they send each other therefore never wait for each other in a cycle.
template <GemmConfig kConfig>
HP_DEVICE void store_with_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                                  StreamWalk walk, int consumer) {
  if (args.addend_flags > 0 && threadIdx.x % 128 / 32 == 1) await_addends<kConfig>(args, shared);
  sync_threads(1 + consumer, 128);
  const bool skip = any_of_threads(1 + consumer, 128, shared.poisoned());
  const Strips<kConfig> strips(shared, args.stream_blocks, walk.share());
  for (; walk.valid(); walk.next()) {
    if (!walk.is_owner()) continue;
    const int column = walk.tile() * kConfig.tile_n + consumer * 64 + Eights<kConfig>::column();
    const AddendSums<kConfig> sums(args, shared, column);
    for (int first = 0; first < strips.kAll && !skip; first += strips.kStaged) {
      for_each_strip<kConfig>(strips, first, [&](int strip, const Eights<kConfig>& eights) {
        sums.run(strip, eights);
      });
    }
    const bool failed = any_of_threads(1 + consumer, 128, shared.poisoned());
    publish_columns<kConfig>(args, shared, consumer, failed, true);
  }
  let_next_kernel_begin();
}

}  // namespace harpe::device
