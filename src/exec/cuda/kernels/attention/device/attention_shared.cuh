#pragma once

#include "exec/cuda/device/mbarrier.cuh"
#include "exec/cuda/kernels/attention/device/attention_args.h"
#include "exec/cuda/kernels/attention/device/attention_config.h"

// The shared memory of an attention block, through which its roles communicate.
namespace harpe::device {

inline constexpr int kMaxKvStages = 4;
inline constexpr int kMaxQueryStages = 2;
// A warpgroup reads the description of a query tile until it has stored the tile's results, after
// it has released the tile's query slot. The producer overwrites the description only after the
// slot of the tile after the next was released too. By then every warpgroup has stored these
// results and has taken another turn (bar.sync).
inline constexpr int kQueryTiles = 4;

// The producer's description of a key tile for the consumers. The producer writes it before its
// arrival at key_full: a wait acquires what precedes every arrival of the phase, whichever arrival
// completes it. Consumers read it before they release the slot.
struct alignas(16) KvStep {
  static constexpr int kMasked = 1;
  static constexpr int kLast = 2;      // the last key tile of its query tile
  static constexpr int kFinal = 4;     // and this is the block's last query tile
  static constexpr int kPoisoned = 8;  // a wait failed: store and publish nothing

  int position;
  int columns;
  int flags;
  int unused;
};

struct alignas(16) QueryTile {
  int panel;
  int row;  // in the panel
  int head;
  int batch;
};

// State of the producer alone between key tiles, kept here because it has few registers.
struct KvSlice {
  KvView view;
  int head;  // key head
  int batch;
};

struct AttentionSync {
  KvStep steps[kMaxKvStages];
  QueryTile tiles[kQueryTiles];
  KvSlice slice;
  Barrier query_full[kMaxQueryStages];
  Barrier query_empty[kMaxQueryStages];
  Barrier key_full[kMaxKvStages];
  Barrier key_empty[kMaxKvStages];
  Barrier value_full[kMaxKvStages];
  Barrier value_empty[kMaxKvStages];
};

static_assert(sizeof(AttentionSync) <= kAttentionSyncBytes);

// Queries come first: [stage][warpgroup][64 columns][64 rows of 128 bytes]; then keys, then values:
// [stage][64 columns][kv_tile rows of 128 bytes].
template <AttentionConfig kConfig>
class AttentionShared {
 public:
  static constexpr int kQueryBox = kRowsOfWarpgroup * 128;
  static constexpr int kKvBox = kConfig.kv_tile * 128;

  HP_DEVICE explicit AttentionShared(std::uint8_t* base) : base_(base) {}

  HP_DEVICE std::uint8_t* queries(int stage, int warpgroup) const {
    constexpr int kBytes = kRowsOfWarpgroup * kConfig.query_dim * 2;
    return base_ + stage * query_bytes(kConfig) + warpgroup * kBytes;
  }
  HP_DEVICE std::uint8_t* keys(int stage) const {
    constexpr int kStart = kConfig.query_stages * query_bytes(kConfig);
    return base_ + kStart + stage * key_bytes(kConfig);
  }
  HP_DEVICE std::uint8_t* values(int stage) const {
    constexpr int kStart =
        kConfig.query_stages * query_bytes(kConfig) + kConfig.kv_stages * key_bytes(kConfig);
    return base_ + kStart + stage * value_bytes(kConfig);
  }
  HP_DEVICE AttentionSync& sync() const {
    return *reinterpret_cast<AttentionSync*>(base_ + shared_bytes(kConfig) - kAttentionSyncBytes);
  }

  // By one warp, one lane for each stage. A slot is empty once every consumer warp has arrived.
  HP_DEVICE void init_barriers() const {
    constexpr int kWarps = kConfig.consumers * 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    AttentionSync& shared = sync();
    if (lane < kConfig.query_stages) {
      init_barrier(&shared.query_full[lane], 1);
      init_barrier(&shared.query_empty[lane], kWarps);
    }
    if (lane < kConfig.kv_stages) {
      init_barrier(&shared.key_full[lane], 1);
      init_barrier(&shared.key_empty[lane], kWarps);
      init_barrier(&shared.value_full[lane], 1);
      init_barrier(&shared.value_empty[lane], kWarps);
    }
    fence_barrier_init();
  }

 private:
  std::uint8_t* base_;
};

}  // namespace harpe::device
