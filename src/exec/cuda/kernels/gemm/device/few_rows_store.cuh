#pragma once

#include "exec/cuda/device/in_data.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_join.cuh"

// The epilogue for few rows: stores joined sums to all panels of the rows, or keeps them for their
// addends (few_rows_add.cuh).
namespace harpe::device {

// Stores eight columns of a row, of which those before n exist. n and strides of C are multiples of
// 16 bytes.
template <GemmConfig kConfig>
HP_DEVICE void store_eight(const GemmArgs& args, const RowsPanel& panel, int row, int column,
                           const float4& low, const float4& high) {
  char* const to =
      static_cast<char*>(panel.c) +
      (static_cast<std::int64_t>(row) * panel.c_stride + column) * bytes_of(kConfig.out);
  if constexpr (kConfig.out == Element::F32) {
    if (column < args.n) *reinterpret_cast<float4*>(to) = low;
    if (column + 4 < args.n) *reinterpret_cast<float4*>(to + 16) = high;
  } else {
    if (column >= args.n) return;
    const uint4 eight = pack_eight<kConfig.out>(low, high);
    if (panel.is_in_data != 0) {
      if (panel.c != nullptr) store_in_data(reinterpret_cast<uint4*>(to), eight);
    } else {
      *reinterpret_cast<uint4*>(to) = eight;
    }
  }
}

// Calls visit(index, panel, row) for each panel that has the strip; `row` is its first row there.
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_panel(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int strip,
                              Visit visit) {
  const int of = shared.control().panel_of[strip];  // the panel with its own rows of A
  const RowsPanel panel = shared.panel(of);
  const int row = strip * GemmConfig::kRowAlign - panel.begin;
  visit(of, panel, row);
#pragma unroll 1
  for (int other = args.row_panels; other < args.panel_count; ++other) {
    const RowsPanel copy = shared.panel(other);
    if (copy.rows_of == of) visit(other, copy, row);
  }
}

// Where sums wait in memory for their addends. The thread that stores them here loads them again,
// so they need no fence.
template <GemmConfig kConfig>
HP_DEVICE float4* kept_at(const GemmArgs& args, int row, int column) {
  const std::int64_t columns = static_cast<std::int64_t>(args.tiles) * kConfig.tile_n;
  const int of_pair = block_of_pair<kConfig>() * kConfig.tile_m + row;
  return reinterpret_cast<float4*>(args.kept + of_pair * columns + column);
}

// Stores a staged strip to the panels of its rows. For a panel that adds addends to its own sums,
// it keeps the sums in memory instead.
template <GemmConfig kConfig>
HP_DEVICE void store_strip(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int strip,
                           const Eights<kConfig>& eights, int first_column, const char* staged) {
  const int column = first_column + eights.column();
  float4 sums[Eights<kConfig>::kCount][2];
#pragma unroll
  for (int i = 0; i < eights.kCount; ++i) {
    const auto* const from = reinterpret_cast<const float4*>(
        staged + eights.row(i) * GemmConfig::kStagedRowBytes + eights.column() * 4);
    sums[i][0] = from[0];
    sums[i][1] = from[1];
  }
  for_each_panel(args, shared, strip, [&](int /*index*/, const RowsPanel& panel, int first_row) {
    if (panel.addends != 0 && panel.rows_of >= 0) return;
#pragma unroll
    for (int i = 0; i < eights.kCount; ++i) {
      const int row = first_row + eights.row(i);
      if (row >= panel.rows) continue;
      if (panel.addends == 0) {
        store_eight<kConfig>(args, panel, row, column, sums[i][0], sums[i][1]);
      } else {
        float4* const to =
            kept_at<kConfig>(args, strip * GemmConfig::kRowAlign + eights.row(i), column);
        to[0] = sums[i][0];
        to[1] = sums[i][1];
      }
    }
  });
}

// Whether a wait of any thread block of the stream failed. The consumer's threads vote, because a
// word may be set between their reads.
template <GemmConfig kConfig>
HP_DEVICE bool is_any_poisoned(const FewRowsShared<kConfig>& shared, int shares, int consumer) {
  const std::uint32_t* const poisoned = &shared.control().poisoned;
  bool any = false;
  for (int share = 0; share < shares; ++share) {
    const std::uint32_t there = shared_address_in(poisoned, block_that_joins<kConfig>(share));
    any = load_word_of_cluster(there) != 0 || any;
  }
  return any_of_threads(1 + consumer, 128, any);
}

// By the tile's owner: stages its strips from kFirst on and stores them to C.
template <GemmConfig kConfig, int kFirst = 0>
HP_DEVICE void store_strips(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                            const Strips<kConfig>& strips, const StreamWalk& walk, int consumer,
                            const Accumulators<kConfig>& sums, Exchange<kConfig>& exchange,
                            bool skip) {
  if constexpr (kFirst < Strips<kConfig>::kAll) {
    if (strips.has_staged(kFirst)) {
      char* const staged = exchange.inbox();
      exchange.sync();  // all threads have read the inbox, which is overwritten here
      stage_rows<kConfig, kFirst>(strips, staged, sums);
      exchange.sync();
      const int column = walk.tile() * kConfig.tile_n + consumer * 64;
      if (!skip) {
        for_each_strip<kConfig>(strips, kFirst, [&](int strip, const Eights<kConfig>& eights) {
          constexpr int kBytes = GemmConfig::kRowAlign * GemmConfig::kStagedRowBytes;
          store_strip<kConfig>(args, shared, strip, eights, column,
                               staged + (strip - kFirst) * kBytes);
        });
      }
    }
    store_strips<kConfig, kFirst + Strips<kConfig>::kStaged>(args, shared, strips, walk, consumer,
                                                             sums, exchange, skip);
  }
}

// Joins the consumer's columns of the tile and stores them to C, or leaves them to the tile's
// owner. True if it did not store them, because a wait failed.
template <GemmConfig kConfig>
HP_DEVICE bool join_strips(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                           const StreamWalk& walk, int consumer, Accumulators<kConfig>& sums,
                           Exchange<kConfig>& exchange) {
  const Strips<kConfig> strips(shared, args.stream_blocks, walk.share());
  if (walk.shares() > 1) {
    send_strips<kConfig>(strips, walk.share(), sums, exchange);
    add_shares<kConfig>(strips, sums, exchange);
  }
  bool skip = false;
  if (walk.is_owner()) {
    if (args.waits > 0) skip = is_any_poisoned<kConfig>(shared, walk.shares(), consumer);
    add_parts<kConfig>(args, strips, walk, consumer, sums);
    store_strips<kConfig>(args, shared, strips, walk, consumer, sums, exchange, skip);
  } else {
    leave_part<kConfig>(strips, part_of<kConfig>(args, walk.stream(), consumer), sums);
  }
  exchange.take();
  return skip;
}

// By a consumer, once its columns of a tile are stored: after a barrier of its threads its first
// warp counts them, one lane per panel, for the panels with addends or for the others. If they were
// skipped, it poisons the ranks that wait. Panels in data are not counted.
template <GemmConfig kConfig>
HP_DEVICE void publish_columns(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                               int consumer, bool skipped, bool with_addends) {
  const auto& control = shared.control();
  const std::uint32_t panels = skipped ? control.awaited : control.counted;
  if (panels == 0) return;
  sync_threads(1 + consumer, 128);
  const auto lane = static_cast<int>(threadIdx.x % 128);
  if (lane >= args.panel_count || (panels >> lane & 1) == 0) return;
  const GemmPanel& panel = panel_of(args, lane);
  if ((panel.addends != 0) != with_addends) return;
  if (skipped) {
    give_up_block(panel);
  } else {
    publish_block(args, panel);
  }
}

// Joins, stores and publishes the consumer's columns of the tile, or leaves them to its owner.
// Nothing is stored once a wait has failed.
template <GemmConfig kConfig>
HP_DEVICE void finish_columns(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                              const StreamWalk& walk, int consumer, Accumulators<kConfig>& sums,
                              Exchange<kConfig>& exchange) {
  wait_barrier(&shared.control().begun, 0);
  const bool skip = join_strips<kConfig>(args, shared, walk, consumer, sums, exchange);
  if (walk.is_owner()) publish_columns<kConfig>(args, shared, consumer, skip, false);
}

}  // namespace harpe::device
