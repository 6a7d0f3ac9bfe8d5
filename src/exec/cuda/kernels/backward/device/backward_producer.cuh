#pragma once

#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/kernels/attention/device/attention_softmax.cuh"
#include "exec/cuda/kernels/backward/device/backward_args.h"
#include "exec/cuda/kernels/backward/device/backward_shared.cuh"

// The producer warps. They load a block's keys and values and then, step by step, the queries that
// the keys meet.
namespace harpe::device {

// The queries of a step.
struct MetQueries {
  int head;   // among all query heads
  int query;  // the first query
};

// Iterates over the steps of a block.
class BackwardWalk {
 public:
  HP_DEVICE BackwardWalk(const BackwardGrid& grid, const BackwardWork& work)
      : grid_(grid), work_(work) {
    move_to(0);
  }

  [[nodiscard]] HP_DEVICE bool done() const { return step_ >= work_.count; }
  [[nodiscard]] HP_DEVICE const BackwardStep& at() const { return at_; }
  [[nodiscard]] HP_DEVICE MetQueries queries() const {
    return {work_.kv_head * grid_.heads_per_kv_head + at_.head, at_.query_tile * kQueryTile};
  }

  HP_DEVICE void advance(int steps = 1) { move_to(step_ + steps); }

 private:
  HP_DEVICE void move_to(int step) {
    step_ = step;
    at_ = step_at(work_.all, step);
  }

  const BackwardGrid& grid_;
  const BackwardWork& work_;
  int step_;
  BackwardStep at_;
};

HP_DEVICE float number_at(const RowNumbers& numbers, int batch, int head, int row) {
  const AttentionStrides& strides = numbers.strides;
  return numbers.data[batch * strides.batch + head * strides.head + row * strides.row];
}

// The term that is added to a scaled score in the exponent of 2. For a query that sees nothing it
// is -inf, so that its weights are 0.
HP_DEVICE float minus_log2(float lse) {
  constexpr float kLog2E = 1.4426950408889634F;
  return lse > minus_infinity() ? -lse * kLog2E : minus_infinity();
}

template <BackwardConfig kConfig>
class BackwardProducer {
 public:
  HP_DEVICE BackwardProducer(const BackwardArgs& args, BackwardShared<kConfig> shared)
      : args_(args),
        shared_(shared),
        sync_(shared.sync()),
        work_(shared.sync().work),
        walk_(args.grid, work_) {}

  // By one thread: loads matrices by TMA.
  HP_DEVICE void bring_matrices() {
    if (walk_.done()) return;
    load_keys();
#pragma unroll 1
    for (; !walk_.done(); walk_.advance(), slots_.advance()) {
      Barrier* const full = &sync_.queries_full[slots_.slot];
      wait_barrier(&sync_.queries_empty[slots_.slot], slots_.parity ^ 1);
      arrive_expecting(full, query_bytes(kConfig));
      load_queries(args_.q, 0, full);
      load_queries(args_.d_o, 1, full);
    }
  }

  // By a warp: brings lse and delta with generic loads and stores.
  HP_DEVICE void bring_numbers() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
    for (; !walk_.done(); walk_.advance(), slots_.advance()) {
      const MetQueries met = walk_.queries();
      float minus_lse[2];
      float delta[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = met.query + lane + half * 32;
        const bool exists = query < args_.grid.queries;
        minus_lse[half] = exists ? minus_log2(number_at(args_.lse, work_.batch, met.head, query))
                                 : minus_infinity();
        delta[half] = exists ? number_at(args_.delta, work_.batch, met.head, query) : 0;
      }
      wait_barrier(&sync_.queries_empty[slots_.slot], slots_.parity ^ 1);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        shared_.minus_lse(slots_.slot)[lane + half * 32] = minus_lse[half];
        shared_.delta(slots_.slot)[lane + half * 32] = delta[half];
      }
      if (lane == 0) sync_.query[slots_.slot] = met.query;
      arrive(&sync_.queries_full[slots_.slot]);
    }
  }

 private:
  static constexpr int kBoxes = kConfig.head_dim / kBoxColumns;

  HP_DEVICE void load_keys() {
    arrive_expecting(&sync_.keys_full, key_bytes(kConfig));
    load_keys(args_.k, 0);
    load_keys(args_.v, 1);
  }

  HP_DEVICE void load_keys(const TensorMap& map, int matrix) {
#pragma unroll
    for (int group = 0; group < kBackwardConsumers; ++group) {
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        load_tile(shared_.keys(matrix, group) + box * kBackwardBox, &map, &sync_.keys_full,
                  box * kBoxColumns, work_.kv_head, work_.key + group * kRowsOfWarpgroup,
                  work_.batch);
      }
    }
  }

  HP_DEVICE void load_queries(const TensorMap& map, int matrix, Barrier* full) {
    const MetQueries met = walk_.queries();
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      load_tile(shared_.queries(slots_.slot, matrix) + box * kBackwardBox, &map, full,
                box * kBoxColumns, met.head, met.query, work_.batch);
    }
  }

  const BackwardArgs& args_;
  BackwardShared<kConfig> shared_;
  BackwardSync& sync_;
  const BackwardWork& work_;
  BackwardWalk walk_;
  Ring<kConfig.query_stages> slots_;
};

}  // namespace harpe::device
