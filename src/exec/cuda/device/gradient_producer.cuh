#pragma once

#include "exec/cuda/device/attention_softmax.cuh"
#include "exec/cuda/device/gradient_args.h"
#include "exec/cuda/device/gradient_shared.cuh"
#include "exec/cuda/device/tma.cuh"

// What brings the rows of a block and then, tile by tile, the columns they meet: those of each
// query head in turn where rows are keys.
namespace harpe::device {

// What a block makes and meets; the same for all its roles. Columns are met in steps, those of a
// head and then those of the next.
struct GradientWork {
  GradientTile tile;
  ColumnRange columns;
  int head;    // whose columns are met first
  int column;  // that is met first
  int steps;
  int part;  // of those that make the same rows
  int parts;
};

template <GradientSide kSide>
HP_DEVICE GradientWork gradient_work(const GradientArgs& args, int block) {
  constexpr bool kOfKeys = kSide == GradientSide::Keys;
  constexpr int kColumns = column_tile(kSide);
  const GradientRows& side = kOfKeys ? args.keys : args.queries;
  GradientWork work;
  work.parts = kOfKeys ? args.key_parts : 1;
  work.part = block % work.parts;
  work.tile = gradient_tile(side, block / work.parts, kGradientRows);
  work.columns = seen_columns(side, work.tile.row, kGradientRows);
  const int heads = kOfKeys ? args.heads_per_kv_head : 1;
  const int of_head = ceil_div(work.columns.end - work.columns.begin, kColumns);
  const StepRange steps = steps_of_part(of_head * heads, work.part, work.parts);
  work.steps = steps.end - steps.begin;
  const int head = work.steps > 0 ? steps.begin / of_head : 0;
  work.head = head + (kOfKeys ? work.tile.head * heads : work.tile.head / args.heads_per_kv_head);
  work.column = work.columns.begin + (steps.begin - head * of_head) * kColumns;
  return work;
}

HP_DEVICE float number_at(const RowNumbers& numbers, int batch, int head, int row) {
  const AttentionStrides& strides = numbers.strides;
  return numbers.data[batch * strides.batch + head * strides.head + row * strides.row];
}

// What 2^ is taken of, besides the score. Weights of a query that sees nothing are 0.
HP_DEVICE float minus_log2(float lse) {
  constexpr float kLog2E = 1.4426950408889634F;
  return lse > minus_infinity() ? -lse * kLog2E : minus_infinity();
}

template <GradientConfig kConfig, GradientSide kSide>
class GradientProducer {
 public:
  HP_DEVICE GradientProducer(const GradientArgs& args, GradientShared<kConfig, kSide> shared,
                             const GradientWork& work)
      : args_(args), shared_(shared), sync_(shared.sync()), work_(work) {}

  // By one thread.
  HP_DEVICE void bring_matrices() {
    if (work_.steps == 0) return;
    load_rows();
    for_each_tile([&](int head, int column) {
      Barrier* const full = &sync_.column_full[slots_.slot];
      wait_barrier(&sync_.column_empty[slots_.slot], slots_.parity ^ 1);
      arrive_expecting(full, column_bytes(kConfig, kSide));
      constexpr bool kOfKeys = kSide == GradientSide::Keys;
      load_columns(kOfKeys ? args_.q : args_.k, 0, head, column, full);
      load_columns(kOfKeys ? args_.d_o : args_.v, 1, head, column, full);
    });
  }

  // Where columns are queries, by as many threads, this one the `thread`-th.
  HP_DEVICE void bring_numbers(int thread) {
    for_each_tile([&](int head, int column) {
      const int query = column + thread;
      float minus_lse = minus_infinity();
      float delta = 0;
      if (query < args_.keys.columns) {
        minus_lse = minus_log2(number_at(args_.lse, work_.tile.batch, head, query));
        delta = number_at(args_.delta, work_.tile.batch, head, query);
      }
      wait_barrier(&sync_.column_empty[slots_.slot], slots_.parity ^ 1);
      shared_.minus_lse(slots_.slot)[thread] = minus_lse;
      shared_.delta(slots_.slot)[thread] = delta;
      arrive(&sync_.column_full[slots_.slot]);
    });
  }

 private:
  using Shared = GradientShared<kConfig, kSide>;
  static constexpr int kBoxes = kConfig.head_dim / kBoxColumns;

  template <class Bring>
  HP_DEVICE void for_each_tile(const Bring& bring) {
    int head = work_.head;
    int column = work_.column;
#pragma unroll 1
    for (int left = work_.steps; left > 0; --left) {
      bring(head, column);
      slots_.advance();
      column += Shared::kColumns;
      if (column < work_.columns.end) continue;
      column = work_.columns.begin;
      ++head;
    }
  }

  HP_DEVICE void load_rows() {
    constexpr bool kOfKeys = kSide == GradientSide::Keys;
    arrive_expecting(&sync_.rows_full, row_bytes(kConfig));
    load_rows(kOfKeys ? args_.k : args_.q, 0);
    load_rows(kOfKeys ? args_.v : args_.d_o, 1);
  }

  HP_DEVICE void load_rows(const TensorMap& map, int matrix) {
#pragma unroll
    for (int group = 0; group < kGradientConsumers; ++group) {
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        load_tile(shared_.rows(matrix, group) + box * Shared::kRowBox, &map, &sync_.rows_full,
                  box * kBoxColumns, work_.tile.head, work_.tile.row + group * kRowsOfWarpgroup,
                  work_.tile.batch);
      }
    }
  }

  HP_DEVICE void load_columns(const TensorMap& map, int matrix, int head, int column,
                              Barrier* full) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
#pragma unroll
      for (int part = 0; part < Shared::kColumns / kGradientBoxRows; ++part) {
        load_tile(
            shared_.columns(slots_.slot, matrix) + box * Shared::kColumnBox + part * kGradientBox,
            &map, full, box * kBoxColumns, head, column + part * kGradientBoxRows,
            work_.tile.batch);
      }
    }
  }

  const GradientArgs& args_;
  Shared shared_;
  GradientSync& sync_;
  GradientWork work_;
  Ring<Shared::kStages> slots_;
};

}  // namespace harpe::device
