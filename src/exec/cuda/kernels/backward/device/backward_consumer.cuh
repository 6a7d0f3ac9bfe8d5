#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/backward/device/backward_producer.cuh"
#include "exec/cuda/kernels/backward/device/backward_store.cuh"

// A consumer warpgroup: 64 keys. The accumulators of the scores k q^T and of the products v do^T
// have keys as rows, so weights and gradients of scores are the register operands of the wgmmas for
// dv and dk. For dq both warpgroups leave their gradients of scores in shared memory, and each
// computes half of dq's columns from all keys. It does so a step later, while it computes the
// weights of the next step, so that neither warpgroup waits for the other. The order of wgmmas is
// chosen to fit the registers.
namespace harpe::device {

template <BackwardConfig kConfig>
class BackwardConsumer {
 public:
  HP_DEVICE BackwardConsumer(const BackwardArgs& args, BackwardShared<kConfig> shared,
                             int warpgroup)
      : args_(args),
        shared_(shared),
        sync_(shared.sync()),
        work_(shared.sync().work),
        warpgroup_(warpgroup),
        steps_(static_cast<unsigned>(work_.count)) {}

  HP_DEVICE void run() {
#pragma unroll
    for (int i = 0; i < kSums; ++i) key_sums_[i] = value_sums_[i] = 0;
    if (steps_ > 0) go_over_queries();
    await_parts_before();
    store();
    let_next_part();
  }

 private:
  static constexpr int kScores = kQueryTile / 2;
  static constexpr int kSums = kConfig.head_dim / 2;
  static constexpr int kColumns = kConfig.head_dim / kBackwardConsumers;  // a warpgroup's, of dq
  static constexpr int kQuerySums = kColumns / 2;
  static constexpr int kParts = 1;  // named barrier
  using Fragments = std::uint32_t[kQueryTile / 16][4];

  HP_DEVICE void go_over_queries() {
    wait_barrier(&sync_.keys_full, 0);
    await_queries(0);
    multiply_queries(0, 0, scores_);
#pragma unroll 1
    for (; step_ < steps_; ++step_) {
      const int query = sync_.query[slot()];
      wait_wgmmas<0>();
      pin(scores_);
      float products[kScores];
      multiply_queries(step_, 1, products);
      take_scores(query);
      take_products(products);
      add_queries(weights_, 1, value_sums_);
      add_queries(gradients_, 0, key_sums_);
      leave_scores();
      float query_sums[kQuerySums];
      multiply_scores(step_ - 1, query_sums);
      end_key_sums();
      if (step_ + 1 < steps_) await_queries(step_ + 1);
      multiply_queries(step_ + 1, 0, scores_);
      wait_wgmmas<1>();
      pin(query_sums);
      if (step_ > 0) leave_sums(step_ - 1, query_sums);
      tell_what_is_left();
    }
    float query_sums[kQuerySums];
    multiply_scores(steps_ - 1, query_sums);
    wait_wgmmas<0>();
    pin(query_sums);
    leave_sums(steps_ - 1, query_sums);
    tell_what_is_left();
  }

  HP_DEVICE void await_queries(unsigned step) {
    wait_barrier(&sync_.queries_full[step % kConfig.query_stages],
                 phase_of<kConfig.query_stages>(step));
  }

  // The slot of the current step's queries.
  [[nodiscard]] HP_DEVICE unsigned slot() const { return step_ % kConfig.query_stages; }

  // Issues the warpgroup's keys times a step's queries (matrix 0), or values times do (1), as one
  // wgmma group. After the last step it multiplies old data, and nothing uses the result.
  HP_DEVICE void multiply_queries(unsigned step, int matrix, float (&results)[kScores]) {
    const std::uint64_t keys = k_major(shared_.keys(matrix, warpgroup_));
    const std::uint64_t queries = k_major(shared_.queries(step % kConfig.query_stages, matrix));
    pin(results);
    begin_wgmmas();
#pragma unroll
    for (int k = 0; k < kConfig.head_dim / 16; ++k) {
      constexpr int kSteps = kBoxColumns / 16;
      const std::uint64_t inside = k % kSteps * kKMajorStep + k / kSteps * (kBackwardBox >> 4);
      Wgmma<kQueryTile, kConfig.element, false>::multiply(results, keys + inside, queries + inside,
                                                          k > 0);
    }
    commit_wgmmas();
  }

  // Issues the gradients of a step's scores, of all keys, times half of the keys' columns, as one
  // wgmma group. Before the first step it multiplies old data, and nothing uses the result.
  HP_DEVICE void multiply_scores(unsigned step, float (&results)[kQuerySums]) {
    const unsigned stage = step % kScoreStages;
    wait_barrier(&sync_.scores_full[stage], phase_of<kScoreStages>(step));
    const std::uint64_t scores = n_major(shared_.scores(stage), kBackwardBox);
    constexpr int kBytes = kColumns * 2;
    const std::uint32_t inside = static_cast<std::uint32_t>(
        warpgroup_ * kBytes / 128 * kBackwardBox + warpgroup_ * kBytes % 128);
    pin(results);
    begin_wgmmas();
#pragma unroll
    for (int k = 0; k < kKeyTile / 16; ++k) {
      constexpr int kSteps = kRowsOfWarpgroup / 16;
      const std::uint64_t keys = n_major(shared_.keys(0, k / kSteps) + inside, kBackwardBox);
      Wgmma<kColumns, kConfig.element, true>::multiply_transposed(
          results, scores + k * kNMajorStep, keys + k % kSteps * kNMajorStep, k > 0);
    }
    commit_wgmmas();
  }

  // Turns scores into weights.
  HP_DEVICE void take_scores(int query) {
    if (is_cut(args_.grid, first_key(), kRowsOfWarpgroup, query)) cut(query);
    const float* const of_thread = shared_.minus_lse(slot()) + own_thread() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      const float2 minus_lse = numbers(of_thread, i);
      scores_[i] = exp2_fast(fmaf(scores_[i], args_.scale_log2, minus_lse.x));
      scores_[i + 1] = exp2_fast(fmaf(scores_[i + 1], args_.scale_log2, minus_lse.y));
    }
  }

  HP_DEVICE void cut(int query) {
    const BackwardGrid& grid = args_.grid;
    const int lane = own_thread() % 4 * 2;
    const int first = first_key() + row_of_thread();
    VisibleColumns visible[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int key = first + 8 * half;
      const int end = key < grid.keys ? smaller(grid.queries, key - grid.band.low + 1) : query;
      visible[half].low = key - grid.band.high - query - lane;
      visible[half].high = end - query - lane;
    }
    hide(scores_, visible, true);
  }

  // The warpgroup's first key.
  [[nodiscard]] HP_DEVICE int first_key() const {
    return work_.key + warpgroup_ * kRowsOfWarpgroup;
  }

  // The thread's first row in the warpgroup's accumulators.
  [[nodiscard]] HP_DEVICE int row_of_thread() const {
    const int thread = own_thread();
    return thread / 32 * 16 + thread % 32 / 4;
  }

  // The thread's index in the warpgroup. Read again at each use (volatile), because values derived
  // from it would occupy registers throughout the loop.
  [[nodiscard]] HP_DEVICE static int own_thread() {
    std::uint32_t thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return static_cast<int>(thread % kWarpgroup);
  }

  // The two queries' numbers for values `i` and `i + 1` of an accumulator.
  HP_DEVICE static float2 numbers(const float* of_thread, int i) {
    return *reinterpret_cast<const float2*>(of_thread + i / 4 * 8);
  }

  // Turns weights and products into gradients of scores.
  HP_DEVICE void take_products(float (&products)[kScores]) {
    wait_wgmmas<0>();
    pin(products);
    pack_scores(weights_);
    const float* const of_thread = shared_.delta(slot()) + own_thread() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      const float2 delta = numbers(of_thread, i);
      scores_[i] *= products[i] - delta.x;
      scores_[i + 1] *= products[i + 1] - delta.y;
    }
    pack_scores(gradients_);
  }

  HP_DEVICE void pack_scores(Fragments& fragments) {
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      fragments[i / 8][i / 2 % 4] = pack<kConfig.element>(scores_[i], scores_[i + 1]);
    }
  }

  // Issues fragments times queries (matrix 0) or do (1), added to the sums, as one wgmma group.
  HP_DEVICE void add_queries(const Fragments& fragments, int matrix, float (&sums)[kSums]) {
    const std::uint64_t queries = n_major(shared_.queries(slot(), matrix), kBackwardBox);
    pin(sums);
    begin_wgmmas();
#pragma unroll
    for (int k = 0; k < kQueryTile / 16; ++k) {
      Wgmma<kConfig.head_dim, kConfig.element, true>::multiply(sums, fragments[k],
                                                               queries + k * kNMajorStep, true);
    }
    commit_wgmmas();
  }

  // Leaves the gradients of scores in shared memory for both warpgroups.
  HP_DEVICE void leave_scores() {
    wait_barrier(&sync_.scores_empty[step_ % kScoreStages], phase_of<kScoreStages>(step_) ^ 1);
    const int thread = own_thread();
    const int lane = thread % 32;
    const int row = warpgroup_ * kRowsOfWarpgroup + thread / 32 * 16 + lane % 16;
    const std::uint32_t box = shared_address(shared_.scores(step_ % kScoreStages));
#pragma unroll
    for (int k = 0; k < kQueryTile / 16; ++k) {
      store_matrices(swizzled(box, row, k * 32 + lane / 16 * 16), gradients_[k][0],
                     gradients_[k][1], gradients_[k][2], gradients_[k][3]);
    }
  }

  // Leaves a step's addends to dq in shared memory for the adder warp. The step's gradients of
  // scores have been read.
  HP_DEVICE void leave_sums(unsigned step, const float (&sums)[kQuerySums]) {
    const int thread = own_thread();
    const unsigned stage = step % kSumStages;
    wait_barrier(&sync_.sums_empty[stage], phase_of<kSumStages>(step) ^ 1);
    const std::uint32_t boxes =
        shared_address(shared_.sums(stage)) +
        static_cast<std::uint32_t>(warpgroup_ * kColumns / 32) * kBackwardBox;
    const int first_row = thread / 32 * 16 + thread % 32 / 4;
    // Odd rows start with other columns, so that neighbouring rows have no bank conflict.
    const bool is_odd = first_row % 2 != 0;
    const int column_of_thread = (thread % 4 * 2 * 4) ^ (is_odd ? 64 : 0);
#pragma unroll
    for (int i = 0; i < kQuerySums; i += 2) {
      const int column = i / 4 * 8;
      const std::uint32_t box = boxes + static_cast<std::uint32_t>(column / 32) * kBackwardBox;
      const int row = first_row + i / 2 % 2 * 8;
      store_pair(swizzled(box, row, column % 32 * 4 ^ column_of_thread),
                 (is_odd ? sums[i ^ 8] : sums[i]) * args_.scale,
                 (is_odd ? sums[(i + 1) ^ 8] : sums[i + 1]) * args_.scale);
    }
  }

  // Waits for this step's wgmmas of dk and dv; then the warp releases the step's queries.
  HP_DEVICE void end_key_sums() {
    wait_wgmmas<1>();
    pin(key_sums_);
    pin(value_sums_);
    __syncwarp();
    if (own_thread() % 32 == 0) arrive(&sync_.queries_empty[slot()]);
  }

  // Arrives for everything that the warp left in shared memory, and releases the gradients of
  // scores of the preceding step. One proxy fence, which is slow, covers both; wgmma and TMA see
  // the stores only behind it.
  HP_DEVICE void tell_what_is_left() const {
    fence_proxy_async_shared();
    __syncwarp();
    if (own_thread() % 32 != 0) return;
    if (step_ < steps_) arrive(&sync_.scores_full[step_ % kScoreStages]);
    if (step_ == 0) return;
    arrive(&sync_.scores_empty[(step_ - 1) % kScoreStages]);
    arrive(&sync_.sums_full[(step_ - 1) % kSumStages]);
  }

  [[nodiscard]] HP_DEVICE std::uint32_t* turn_of_parts() const {
    return args_.key_turns + work_.item.slice * args_.grid.key_tiles + work_.item.place;
  }

  // Parts of a key tile add to its dk and dv in their order: one thread acquires at GPU scope the
  // turn that the preceding part has released, and a barrier orders the other threads behind it.
  HP_DEVICE void await_parts_before() const {
    if (work_.item.part == 0) return;
    if (warpgroup_ == 0 && own_thread() == 0) {
      const auto part = static_cast<std::uint32_t>(work_.item.part);
      while (load_acquire_gpu(turn_of_parts()) != part) {
      }
    }
    sync_threads(kParts, kBackwardConsumers * kWarpgroup);
  }

  HP_DEVICE void let_next_part() const {
    if (args_.grid.parts() == 1) return;
    sync_threads(kParts, kBackwardConsumers * kWarpgroup);
    if (warpgroup_ > 0 || own_thread() > 0) return;
    const int next = work_.item.part + 1 == args_.grid.parts() ? 0 : work_.item.part + 1;
    store_release_gpu(turn_of_parts(), static_cast<std::uint32_t>(next));
  }

  HP_DEVICE void store() const {
    const bool adds = work_.item.part > 0;
    const RowPlace at{work_.batch, work_.kv_head, first_key() + row_of_thread()};
    store_sums(args_.dk, at, args_.grid.keys, adds, args_.scale, key_sums_);
    store_sums(args_.dv, at, args_.grid.keys, adds, 1.0F, value_sums_);
  }

  const BackwardArgs& args_;
  BackwardShared<kConfig> shared_;
  BackwardSync& sync_;
  const BackwardWork& work_;
  int warpgroup_;
  unsigned steps_;
  unsigned step_ = 0;
  float scores_[kScores];
  Fragments weights_;
  Fragments gradients_;
  float key_sums_[kSums];
  float value_sums_[kSums];
};

}  // namespace harpe::device
