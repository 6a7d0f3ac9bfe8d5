#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/kernels/backward/device/backward_producer.cuh"

// Warps that add what a block's steps make of dq to what is there, each step when it is its turn: a
// word for each tile of queries says how many tiles of keys have added. Who has the turn is the
// only one that writes there, and the word. A turn takes about as long as a step (three times to
// the second-level cache and back), so each warp takes every second step.
namespace harpe::device {

template <BackwardConfig kConfig>
class BackwardAdder {
 public:
  // The steps of stage `stage`.
  HP_DEVICE BackwardAdder(const BackwardArgs& args, BackwardShared<kConfig> shared, int stage)
      : args_(args),
        shared_(shared),
        sync_(shared.sync()),
        work_(shared.sync().work),
        walk_(args.grid, work_),
        stage_(stage) {}

  HP_DEVICE void run() {
    walk_.advance(stage_);
#pragma unroll 1
    for (std::uint32_t parity = 0; !walk_.done(); parity ^= 1) {
      wait_barrier(&sync_.sums_full[stage_], parity);
      if (elected()) add();
      __syncwarp();
      walk_.advance(kSumStages);
    }
  }

 private:
  static constexpr int kColumns = 32;  // of a box
  static constexpr int kBoxes = kConfig.head_dim / kColumns;

  [[nodiscard]] HP_DEVICE std::uint32_t* word_of_step() const {
    const BackwardGrid& grid = args_.grid;
    const int slice = work_.item.slice * grid.heads_per_kv_head + walk_.at().head;
    return args_.query_turns + slice * grid.query_tiles + walk_.at().query_tile;
  }

  // By one thread. What others added before is complete and visible to the copy engine, and so is
  // this to who comes next. The wait ends: who has a turn before runs, and waits for no later one.
  HP_DEVICE void add() {
    const TileRange places = meeting_places(args_.grid, walk_.at().query_tile);
    const auto turns = static_cast<std::uint32_t>(places.end - places.begin);
    const auto turn = static_cast<std::uint32_t>(work_.item.place - places.begin);
    std::uint32_t* const word = word_of_step();
    while (load_acquire_gpu(word) != turn) {
    }
    fence_proxy_async();
    const MetQueries met = walk_.queries();
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      const void* const from = shared_.sums(stage_) + box * kBackwardBox;
      if (turn == 0 && !args_.carry_dq) {
        store_tile(&args_.dq, from, box * kColumns, met.head, met.query, work_.batch);
      } else {
        add_tile(&args_.dq, from, box * kColumns, met.head, met.query, work_.batch);
      }
    }
    commit_stores();
    wait_stores_read<0>();
    arrive(&sync_.sums_empty[stage_]);
    wait_stores<0>();
    fence_proxy_async();
    store_release_gpu(word, turn + 1 == turns ? 0 : turn + 1);
  }

  const BackwardArgs& args_;
  BackwardShared<kConfig> shared_;
  BackwardSync& sync_;
  const BackwardWork& work_;
  BackwardWalk walk_;
  int stage_;
};

}  // namespace harpe::device
