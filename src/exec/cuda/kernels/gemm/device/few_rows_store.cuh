#pragma once

#include "exec/cuda/device/in_data.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_join.cuh"

// Where joined sums of few rows go: to the panels that have the rows, with their addends.
namespace harpe::device {

// Eight columns of a row; n and rows of C are multiples of 16 bytes.
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
    const uint4 eight =
        make_uint4(pack<kConfig.out>(low.x, low.y), pack<kConfig.out>(low.z, low.w),
                   pack<kConfig.out>(high.x, high.y), pack<kConfig.out>(high.z, high.w));
    if (panel.is_in_data != 0) {
      if (panel.c != nullptr) store_in_data(reinterpret_cast<uint4*>(to), eight);
    } else {
      *reinterpret_cast<uint4*>(to) = eight;
    }
  }
}

// Calls visit(panel's index, panel, row in it) for all panels that have the strip's first row.
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_panel(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int strip,
                              Visit visit) {
  const int of = shared.control().panel_of[strip];  // the one that brought it
  const RowsPanel panel = shared.panel(of);
  const int row = strip * GemmConfig::kRowAlign - panel.begin;
  visit(of, panel, row);
#pragma unroll 1
  for (int other = args.row_panels; other < args.panel_count; ++other) {
    const RowsPanel copy = shared.panel(other);
    if (copy.rows_of == of) visit(other, copy, row);
  }
}

// Where sums wait for their addends: the thread that keeps them is the one that takes them.
template <GemmConfig kConfig>
HP_DEVICE float4* kept_at(const GemmArgs& args, int row, int column) {
  const std::int64_t columns = static_cast<std::int64_t>(args.tiles) * kConfig.tile_n;
  const int of_pair = block_of_pair<kConfig>() * kConfig.tile_m + row;
  return reinterpret_cast<float4*>(args.kept + of_pair * columns + column);
}

// A strip that is staged, to the panels that have its rows and their sums.
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

// Whether a wait of any block of the stream expired. Asked together: a word may be set meanwhile.
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

// The owner's strips from kFirst on to C.
template <GemmConfig kConfig, int kFirst = 0>
HP_DEVICE void store_strips(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                            const Strips<kConfig>& strips, const StreamWalk& walk, int consumer,
                            const Accumulators<kConfig>& sums, Exchange<kConfig>& exchange,
                            bool skip) {
  if constexpr (kFirst < Strips<kConfig>::kAll) {
    if (strips.has_staged(kFirst)) {
      char* const staged = exchange.inbox();
      exchange.sync();  // all threads have read what others sent
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

// The consumer's columns of the tile, to C or to the tile's owner; whether they were not stored,
// since a wait expired.
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

// By a consumer, once its columns of a tile are stored: its first warp counts them for the panels
// that have addends, or for the others, a lane for each. Nothing of a poisoned kernel's was stored.
// Elements that say that they are there need not be counted.
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

// Two of 16 bits and their sum with `low` and `high`.
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

HP_DEVICE uint4* eight_at(const GemmPiece& from, int row, int column) {
  return reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(from.address) + row * from.stride +
                                  column);
}

// Eight columns of an addend, which another GPU may have stored: not through the first-level cache.
HP_DEVICE uint4 load_eight(const GemmPiece& from, int row, int column) {
  return look_in_data(eight_at(from, row, column));
}

template <Element kFrom>
HP_DEVICE void add_eight(const uint4& eight, float4& low, float4& high) {
  add_pair<kFrom>(eight.x, low.x, low.y);
  add_pair<kFrom>(eight.y, low.z, low.w);
  add_pair<kFrom>(eight.z, high.x, high.y);
  add_pair<kFrom>(eight.w, high.z, high.w);
}

// Eight columns of a row that has addends, on their way: what was kept of it, and its first
// addends.
struct DueEight {
  static constexpr int kAhead = 2;
  int panel = -1;  // none
  int row = 0;     // of the panel
  int column = 0;
  float4 low;
  float4 high;
  uint4 ahead[kAhead];
};

template <GemmConfig kConfig>
HP_DEVICE void begin_eight(const GemmArgs& args, const RowsPanel& panel, int row_of_tile,
                           DueEight& due) {
  due.low = make_float4(-0.0F, -0.0F, -0.0F, -0.0F);  // that all values leave as they are
  due.high = due.low;
  if (panel.rows_of < 0) {
    const float4* const kept = kept_at<kConfig>(args, row_of_tile, due.column);
    due.low = kept[0];
    due.high = kept[1];
  }
#pragma unroll
  for (int i = 0; i < DueEight::kAhead; ++i) {
    if (i < panel.addends) {
      due.ahead[i] = load_eight(piece_of(args, panel.first_addend + i), due.row, due.column);
    }
  }
}

// Adds one once it is there, and takes it away where it said so itself; false where it did not
// come.
template <Element kFrom>
HP_DEVICE bool add_addend(const GemmArgs& args, const GemmPiece& from, DueEight& due,
                          uint4& eight) {
  if (from.is_in_data != 0) {
    uint4* const at = eight_at(from, due.row, due.column);
    if (!await_in_data(args.wait, from.ready, at, eight)) return false;
    take_in_data(at);
  }
  add_eight<kFrom>(eight, due.low, due.high);
  return true;
}

// All addends, in their order; false where one did not come.
template <Element kFrom>
HP_DEVICE bool add_all(const GemmArgs& args, const RowsPanel& panel, DueEight& due) {
#pragma unroll
  for (int i = 0; i < DueEight::kAhead; ++i) {
    if (i >= panel.addends) return true;
    const GemmPiece& from = piece_of(args, panel.first_addend + i);
    if (!add_addend<kFrom>(args, from, due, due.ahead[i])) return false;
  }
  constexpr int kAtOnce = 4;
  const int end = panel.first_addend + panel.addends;
#pragma unroll 1
  for (int first = panel.first_addend + DueEight::kAhead; first < end; first += kAtOnce) {
    uint4 eights[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i < end) eights[i] = load_eight(piece_of(args, first + i), due.row, due.column);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= end) continue;
      if (!add_addend<kFrom>(args, piece_of(args, first + i), due, eights[i])) return false;
    }
  }
  return true;
}

// A strip of the consumer's columns of a tile, to the panel that has addends: what was kept, or
// nothing, with the addends in their order. All that a thread has of a strip is on its way before
// it waits for any. What this kernel stored among it this thread stored.
template <GemmConfig kConfig>
HP_DEVICE void add_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int strip,
                           const Eights<kConfig>& eights, int column) {
  if (column >= args.n) return;
  DueEight due[Eights<kConfig>::kCount];
  for_each_panel(args, shared, strip, [&](int index, const RowsPanel& panel, int first_row) {
    if (panel.addends == 0) return;
#pragma unroll
    for (int i = 0; i < eights.kCount; ++i) {
      if (first_row + eights.row(i) >= panel.rows) continue;
      due[i].panel = index;
      due[i].row = first_row + eights.row(i);
      due[i].column = column;
      begin_eight<kConfig>(args, panel, strip * GemmConfig::kRowAlign + eights.row(i), due[i]);
    }
  });
#pragma unroll
  for (int i = 0; i < eights.kCount; ++i) {
    if (due[i].panel < 0) continue;
    const RowsPanel panel = shared.panel(due[i].panel);
    if (add_all<kConfig.in>(args, panel, due[i])) {
      store_eight<kConfig>(args, panel, due[i].row, column, due[i].low, due[i].high);
    } else {
      mark_poisoned(shared.control().poisoned);
    }
  }
}

// A consumer's second warp, while the first may still publish: a lane for each of a panel's
// addends.
template <GemmConfig kConfig>
HP_DEVICE void await_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  Waiter waiter(args.wait);
  if (lane == 0) note_idle(args.wait, [] { return true; }, [] { return false; });
  for (int i = 0; i < args.panel_count; ++i) {
    const GemmPanel& panel = panel_of(args, i);
    for (int at = lane; at < panel.addends; at += 32) {
      const int index = panel.first_addend + at;
      const FlagWait& ready = piece_of(args, index).ready;
      if (ready.flag == nullptr || piece_of(args, index).is_in_data != 0) continue;
      note_awaited(args.wait, ready);
      waiter.watch(ready, index);
    }
  }
  __syncwarp();
  if (lane == 0) note_stand(args.wait);
  if (waiter.poisoned()) mark_poisoned(shared.control().poisoned);
}

// Once the stream has stored all that has no addends, so that ranks which add up what they send
// each other wait for nothing that waits for them.
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
    for (int first = 0; first < strips.kAll && !skip; first += strips.kStaged) {
      for_each_strip<kConfig>(strips, first, [&](int strip, const Eights<kConfig>& eights) {
        add_addends<kConfig>(args, shared, strip, eights, column);
      });
    }
    const bool failed = any_of_threads(1 + consumer, 128, shared.poisoned());
    publish_columns<kConfig>(args, shared, consumer, failed, true);
  }
  let_next_kernel_begin();
}

// The consumer's columns of the tile, to all panels or to its owner. Nothing of a poisoned kernel's
// is stored.
template <GemmConfig kConfig>
HP_DEVICE void finish_columns(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                              const StreamWalk& walk, int consumer, Accumulators<kConfig>& sums,
                              Exchange<kConfig>& exchange) {
  wait_barrier(&shared.control().begun, 0);
  const bool skip = join_strips<kConfig>(args, shared, walk, consumer, sums, exchange);
  if (walk.is_owner()) publish_columns<kConfig>(args, shared, consumer, skip, false);
}

}  // namespace harpe::device
