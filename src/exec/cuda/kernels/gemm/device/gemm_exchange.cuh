#pragma once

#include "exec/cuda/kernels/gemm/device/addends.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_box.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_store.cuh"

// The epilogue of kernels whose threads exchange sums (GemmConfig::by_threads). A consumer stores
// the sums of each tile at all panels of its rows, most of them on other ranks. Behind its last
// tile it adds up, tile after tile, what all ranks have stored here. No store waits for another
// rank, so ranks never wait for each other in a cycle. What this rank stores here for itself is
// stored and loaded by one thread, so it needs no fence.
namespace harpe::device {

// How the threads of a consumer divide a block of C: columns of 64, as boxes have them. A thread
// moves 16 bytes of a row at a time, eight threads a row.
template <GemmConfig kConfig>
struct ThreadRows {
  static constexpr int kAtOnce = 16;  // rows of 128 threads
  static constexpr int kOfBox = kConfig.store_rows() / kAtOnce;
  static constexpr int kOfBlock = kConfig.block_m() / kAtOnce;

  HP_DEVICE static int row(int index) {
    return static_cast<int>(threadIdx.x) % 128 / 8 + index * kAtOnce;
  }
  HP_DEVICE static int column() { return static_cast<int>(threadIdx.x) % 8 * 8; }
};

// Where a consumer's block of the walk's tile begins in the panel.
template <GemmConfig kConfig>
HP_DEVICE int block_row(const GemmWalk<kConfig>& walk, int consumer) {
  return walk.row() + (kConfig.ping_pong || kConfig.swapped ? 0 : consumer * kConfig.block_m());
}

template <GemmConfig kConfig>
HP_DEVICE int block_column(const GemmWalk<kConfig>& walk, int consumer) {
  return walk.column() + (!kConfig.ping_pong && kConfig.swapped ? consumer * kConfig.block_n() : 0);
}

// By warp 1, one lane per panel: writes what consumers need of the panels into shared memory.
template <GemmConfig kConfig>
HP_DEVICE void note_panels(const GemmArgs& args, const GemmShared<kConfig>& shared) {
  auto& noted = shared.control().noted;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane >= args.panel_count) return;
  const GemmPanel& panel = panel_of(args, lane);
  int first = 0;
  for (int i = 0; i < lane; ++i) first += panel_of(args, i).addends;
  for (int i = 0; i < panel.addends; ++i) {
    noted.addends[first + i] = addend_of(k_chunk_of(args, panel.first_addend + i));
  }
  noted.panels[lane] = {.c = static_cast<std::uint16_t*>(panel.c_address),
                        .stride = panel.c_stride,
                        .first_addend = panel.first_addend,
                        .first_noted = first,
                        .addends = static_cast<std::int16_t>(panel.addends),
                        .rows_of = static_cast<std::int8_t>(panel.rows_of),
                        .is_in_data = static_cast<std::int8_t>(panel.is_in_data)};
}

// Calls visit(panel, its index) for each panel that stores the sums of panel `of`.
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_of_sums(const GemmArgs& args, const GemmShared<kConfig>& shared, int of,
                                Visit visit) {
  const NotedPanel* const panels = shared.control().noted.panels;
  visit(panels[of], of);
#pragma unroll 1
  for (int i = args.row_panels; i < args.panel_count; ++i) {
    const NotedPanel panel = panels[i];
    if (panel.rows_of == of && panel.addends == 0) visit(panel, i);
  }
}

// Stores a staged box, whose first row and column in the panel are given, at all panels of sums.
template <GemmConfig kConfig>
HP_DEVICE void store_box_by_threads(const GemmArgs& args, const GemmShared<kConfig>& shared,
                                    const GemmWalk<kConfig>& walk, std::uint32_t box, int first_row,
                                    int first_column) {
  using Rows = ThreadRows<kConfig>;
  uint4 eights[Rows::kOfBox];
#pragma unroll
  for (int i = 0; i < Rows::kOfBox; ++i) {
    eights[i] = load_eight(swizzled(box, Rows::row(i), Rows::column() * 2));
  }
  const int column = first_column + Rows::column();
  if (column >= args.n) return;
  for_each_of_sums(args, shared, walk.panel_index(), [&](const NotedPanel& panel, int) {
    if (panel.c == nullptr) return;
#pragma unroll
    for (int i = 0; i < Rows::kOfBox; ++i) {
      const int row = first_row + Rows::row(i);
      if (row >= walk.panel_rows()) continue;
      auto* const place = reinterpret_cast<uint4*>(panel.c + row * panel.stride + column);
      if (panel.is_in_data != 0) {
        store_in_data(place, eights[i]);
      } else {
        *place = eights[i];
      }
    }
  });
}

// After a consumer has stored its block, or has skipped it: counts it for the panels that are
// counted, or poisons the ranks that wait.
template <GemmConfig kConfig>
HP_DEVICE void publish_by_threads(const GemmArgs& args, const GemmShared<kConfig>& shared,
                                  const GemmWalk<kConfig>& walk, int consumer, bool skipped) {
  sync_threads(1 + consumer, 128);
  if (threadIdx.x % 128 != 0 || walk.row() >= walk.panel_rows()) return;
  const int of = walk.panel_index();
  for_each_of_sums(args, shared, of, [&](const NotedPanel& noted, int index) {
    if (noted.is_in_data != 0 && !skipped) return;
    const GemmPanel& panel = panel_of(args, index);
    if (panel.done == nullptr) return;
    if (skipped) {
      give_up_block(panel);
    } else {
      publish_block(args, panel);
    }
  });
}

// A consumer's stores: which box it stages next, and how fast boxes leave.
template <GemmConfig kConfig>
class SumStore {
 public:
  HP_DEVICE SumStore(const GemmArgs& args, const GemmShared<kConfig>& shared, int consumer)
      : args_(args), shared_(shared), consumer_(consumer) {}

  // Stages the sums of a tile, box after box, and stores each box at all panels.
  HP_DEVICE void store(const GemmWalk<kConfig>& walk, const GemmSums<kConfig>& sums) {
    wait_barrier(&shared_.control().may_store, 0);
    const bool skip = args_.waits > 0 && any_of_threads(1 + consumer_, 128, shared_.poisoned());
    const int clocks =
        kConfig.ping_pong && has_next(walk) ? StorePace<kConfig>::clocks_apart(walk.blocks()) : 0;
    if (!skip) {
#pragma unroll
      for (int slice = 0; slice < kConfig.slices(); ++slice) {
#pragma unroll
        for (int index = 0; index < kConfig.boxes_of_slice(); ++index) {
          pace_.await(clocks);
          store_box(walk, &sums[slice][index * Pieces<kConfig>::kSums], slice, index);
        }
      }
    }
    publish_by_threads(args_, shared_, walk, consumer_, skip);
  }

 private:
  HP_DEVICE bool has_next(GemmWalk<kConfig> walk) const {
    walk.next();
    return walk.locate();
  }

  // A box is overwritten `boxes` boxes later, behind at least one more barrier.
  HP_DEVICE void store_box(const GemmWalk<kConfig>& walk, const float* sums, int slice, int index) {
    static_assert(Pieces<kConfig>::kBoxes == 1);
    const std::uint32_t box = shared_address(shared_.box(consumer_, slot_, 0));
    if constexpr (kConfig.swapped) {
      write_swapped_box<kConfig>(box, sums, 0);
    } else {
      write_box<kConfig>(box, sums);
    }
    slot_ = slot_ + 1 == kConfig.boxes ? 0 : slot_ + 1;
    sync_threads(1 + consumer_, 128);
    const int row = index / kConfig.boxes_across() * kConfig.store_rows();
    const int column = index % kConfig.boxes_across() * kConfig.store_columns();
    store_box_by_threads<kConfig>(
        args_, shared_, walk, box,
        block_row(walk, consumer_) + row + (kConfig.swapped ? 0 : slice * 64),
        block_column(walk, consumer_) + column + (kConfig.swapped ? slice * 64 : 0));
  }

  const GemmArgs& args_;
  const GemmShared<kConfig>& shared_;
  int consumer_;
  int slot_ = 0;
  StorePace<kConfig> pace_;
};

// The addends of the noted panels.
template <GemmConfig kConfig>
struct NotedAddends {
  const GemmArgs& args;
  const GemmShared<kConfig>& shared;

  [[nodiscard]] HP_DEVICE const RowsAddend& of(int panel, int addend) const {
    const auto& noted = shared.control().noted;
    return noted.addends[noted.panels[panel].first_noted + addend];
  }
  [[nodiscard]] HP_DEVICE const FlagWait& signal_of(int panel, int addend) const {
    return k_chunk_of(args, shared.control().noted.panels[panel].first_addend + addend).ready;
  }
};

// Adds up this thread's rows of 64 columns of a block, and stores the totals; false: a wait failed.
template <GemmConfig kConfig>
HP_DEVICE bool add_up_columns(const GemmArgs& args, const GemmShared<kConfig>& shared,
                              const GemmWalk<kConfig>& walk, int total, int first_row,
                              int first_column) {
  using Rows = ThreadRows<kConfig>;
  // At most so many are in flight, or threads would spill; they divide the rows evenly.
  constexpr int kMost = 8;
  constexpr int kTimes = (Rows::kOfBlock + kMost - 1) / kMost;
  constexpr int kEights = (Rows::kOfBlock + kTimes - 1) / kTimes;
  const NotedPanel panel = shared.control().noted.panels[total];
  const int column = first_column + Rows::column();
  using Addends = NotedAddends<kConfig>;
  const Addends addends{args, shared};
  const AddendSums<kEights, kConfig.in, Addends> sums(args, addends, column);
#pragma unroll 1
  for (int first = 0; first < Rows::kOfBlock; first += kEights) {
    DueEight due[kEights];
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      const int row = first_row + Rows::row(first + i);
      if (first + i >= Rows::kOfBlock || row >= walk.panel_rows() || column >= args.n) continue;
      due[i].panel = total;
      due[i].addends = panel.addends;
      due[i].row = row;
      due[i].low = make_float4(-0.0F, -0.0F, -0.0F, -0.0F);  // the neutral element of addition
      due[i].high = due[i].low;
    }
    if (!sums.add_to(due)) return false;
#pragma unroll
    for (const DueEight& eight : due) {
      if (eight.panel < 0) continue;
      *reinterpret_cast<uint4*>(panel.c + eight.row * panel.stride + column) =
          pack_eight<kConfig.out>(eight.low, eight.high);
    }
  }
  return true;
}

// The panel of the same rows that has addends.
template <GemmConfig kConfig>
HP_DEVICE int total_of(const GemmArgs& args, const GemmShared<kConfig>& shared, int of) {
  const NotedPanel* const panels = shared.control().noted.panels;
  int index = args.row_panels;
  while (panels[index].rows_of != of || panels[index].addends == 0) ++index;
  return index;
}

// By a consumer, behind its last tile: waits for the addends that have flags, then adds up the
// blocks of C whose sums it has stored, in the same order.
template <GemmConfig kConfig>
HP_DEVICE void add_up_tiles(const GemmArgs& args, const GemmShared<kConfig>& shared, int consumer) {
  std::uint32_t& poisoned = shared.control().poisoned;
  if (args.addend_flags > 0 && threadIdx.x % 128 / 32 == 1) await_addends(args, poisoned);
  sync_threads(1 + consumer, 128);
  bool skip = any_of_threads(1 + consumer, 128, shared.poisoned());
  for (GemmWalk<kConfig> walk(args, shared.rows()); walk.locate() && !skip; walk.next()) {
    if (!walk.mine(consumer)) continue;
    const int total = total_of(args, shared, walk.panel_index());
    for (int column = 0; column < kConfig.block_n() && !skip; column += 64) {
      skip = !add_up_columns(args, shared, walk, total, block_row(walk, consumer),
                             block_column(walk, consumer) + column);
    }
  }
  if (skip) mark_poisoned(poisoned);
}

}  // namespace harpe::device
