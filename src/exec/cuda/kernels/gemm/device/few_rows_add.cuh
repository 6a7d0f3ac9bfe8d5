#pragma once

#include "exec/cuda/kernels/gemm/device/few_rows_store.cuh"

// The end of a kernel for few rows whose panels have addends: adds what other ranks stored here to
// the sums that the kernel kept, and stores the totals.
namespace harpe::device {

// Where addends of few rows are.
template <GemmConfig kConfig>
struct FewRowsAddends {
  const GemmArgs& args;
  const FewRowsShared<kConfig>& shared;

  [[nodiscard]] HP_DEVICE RowsAddend of(int panel, int addend) const {
    return shared.addend(args, shared.panel(panel), addend);
  }
  [[nodiscard]] HP_DEVICE const FlagWait& signal_of(int panel, int addend) const {
    return k_chunk_of(args, shared.panel(panel).first_addend + addend).ready;
  }
};

// Adds up strips of the columns from `column` on.
template <GemmConfig kConfig>
class StripSums {
 public:
  HP_DEVICE StripSums(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int column)
      : args_(args), shared_(shared), column_(column) {}

  // By a whole warp: adds the addends of the strip's panel in order to the kept sums, or for a
  // panel without its own sums to nothing, and stores the totals.
  HP_DEVICE void run(int strip, const Eights<kConfig>& eights) const {
    DueEight due[kEights];
    begin(strip, eights, due);
    const FewRowsAddends<kConfig> addends{args_, shared_};
    const AddendSums<kEights, kConfig.in, FewRowsAddends<kConfig>> sums(args_, addends, column_);
    if (!sums.add_to(due)) {
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
  static constexpr int kEights = Eights<kConfig>::kCount;

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

  const GemmArgs& args_;
  const FewRowsShared<kConfig>& shared_;
  int column_;
};

// Stores the panels with addends, after the stream has stored all panels without. Ranks that add up
// what they send each other therefore never wait for each other in a cycle.
template <GemmConfig kConfig>
HP_DEVICE void store_with_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                                  StreamWalk walk, int consumer) {
  if (args.addend_flags > 0 && threadIdx.x % 128 / 32 == 1) {
    await_addends(args, shared.control().poisoned);
  }
  sync_threads(1 + consumer, 128);
  const bool skip = any_of_threads(1 + consumer, 128, shared.poisoned());
  const Strips<kConfig> strips(shared, args.stream_blocks, walk.share());
  for (; walk.valid(); walk.next()) {
    if (!walk.is_owner()) continue;
    const int column = walk.tile() * kConfig.tile_n + consumer * 64 + Eights<kConfig>::column();
    const StripSums<kConfig> sums(args, shared, column);
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
