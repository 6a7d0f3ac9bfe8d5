#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/kernels/backward/device/backward_producer.cuh"

// The two adder warps. They add each step's contribution to dq in its turn: a word for each query
// tile counts the key tiles that have added. Only the block whose turn it is writes that dq and the
// word. A turn takes about as long as a step (three round trips to the L2 cache), so each warp
// takes every second step.
namespace harpe::device {

template <BackwardConfig kConfig>
class BackwardAdder {
 public:
  // Takes the steps of stage `stage`.
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

  // By one thread. The acquire (GPU scope) and the proxy fence order the completed additions of
  // earlier turns before this turn's TMA operation. When that is complete, a proxy fence and the
  // release order it before the next turn. The wait ends, since the blocks of earlier turns are
  // running and never wait for later turns.
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
