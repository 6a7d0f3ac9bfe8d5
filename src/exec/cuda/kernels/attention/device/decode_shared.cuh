#pragma once

#include "exec/cuda/device/mbarrier.cuh"
#include "exec/cuda/kernels/attention/device/decode_args.h"
#include "exec/cuda/kernels/attention/device/decode_config.h"

// The shared memory of a block of decode.cuh, through which its roles communicate.
namespace harpe::device {

inline constexpr int kMostDecodeSlots = 6;
inline constexpr int kMostDecodeTile = 256;
inline constexpr int kMostDecodeColumns = 32;
inline constexpr int kDecodeWarps = kDecodeConsumers / 32;

// A thread block's part of one pair: consecutive key tiles.
struct alignas(16) DecodePiece {
  int sequence;
  int group;  // head group
  int tiles;  // 0: no parts remain
  int parts;  // number of blocks that have a part of the pair
  int part;   // index of this part among them
  int first;  // the block with the first part
  int bunch;  // parts_of_bunch(parts)
  int lower;  // lower parts of its bunch
};

// Describes one tile in a ring slot. The producer writes it before its arrival at `filled`.
struct DecodeStep {
  std::uint32_t seen[kMostDecodeTile / 32];  // a bit for each key that exists; only unless `all`
  int all;                                   // 1: all keys of the tile exist
};

// Where results are stored. Copied at the start, because the first read of a kernel argument after
// all keys would miss the cache.
struct DecodeResults {
  void* output;
  float* lse;
  float* states;
  AttentionStrides strides;
  AttentionStrides lse_strides;
  Divisor group;  // query heads of a head group
  int columns;    // columns in use: queries of all these heads
  Divisor kv_heads;
};

struct DecodeSync {
  Barrier filled[kMostDecodeSlots];
  Barrier emptied[kMostDecodeSlots];
  Barrier piece_filled[2];
  Barrier piece_emptied[2];
  DecodePiece pieces[2];
  DecodeStep steps[kMostDecodeSlots];
  DecodeResults results;
  float columns[kDecodeWarps][kMostDecodeColumns];
  DecodeCuts cuts;                   // only with cuts_heads(DecodeConfig)
  float handed[kMostDecodeColumns];  // by the warpgroup that scores a column to the other
};

static_assert(sizeof(DecodeSync) <= kDecodeSyncBytes);

// Tiles of keys and values alternate, unless keys hold their values: [slot][64 columns][rows of 128
// bytes]. Then the queries of a pair, [64 columns][query, 128 bytes], and two buffers of weights,
// [64 keys][query, 128 bytes]. A query is a column of the wgmmas.
template <DecodeConfig kConfig>
class DecodeShared {
 public:
  static constexpr int kTile = tile_keys(kConfig);
  static constexpr int kBox = kTile * 128;                  // 64 columns of keys or values
  static constexpr int kColumnBox = kConfig.columns * 128;  // 64 elements of all query columns
  static constexpr int kPieces = pieces_ahead(kConfig);

  HP_DEVICE explicit DecodeShared(std::uint8_t* base) : base_(base) {}

  HP_DEVICE std::uint8_t* slot(int at) const { return base_ + at * slot_bytes(kConfig); }
  HP_DEVICE std::uint8_t* queries() const { return slot(kConfig.slots); }
  HP_DEVICE std::uint8_t* weights(int at) const {
    return queries() + query_bytes(kConfig) + at * weight_bytes(kConfig);
  }
  // Only with parks_sums(DecodeConfig): a thread's quad of sums.
  HP_DEVICE float4& parked(int quad, int thread) const {
    return reinterpret_cast<float4*>(queries())[quad * kDecodeConsumers + thread];
  }
  HP_DEVICE DecodeSync& sync() const {
    return *reinterpret_cast<DecodeSync*>(queries() + buffer_bytes(kConfig));
  }

  // By one thread.
  HP_DEVICE void note_results(const DecodeArgs& args) const {
    sync().results = {.output = args.output,
                      .lse = args.lse,
                      .states = args.states,
                      .strides = args.strides,
                      .lse_strides = args.lse_strides,
                      .group = args.group,
                      .columns = args.group.number * args.queries_per_sequence,
                      .kv_heads = args.kv_heads};
    if constexpr (cuts_heads(kConfig)) sync().cuts = args.cuts;
  }

  // After DecodeSync; only if the kernel exchanges.
  HP_DEVICE DecodeExchange& exchange() const {
    return *reinterpret_cast<DecodeExchange*>(reinterpret_cast<std::uint8_t*>(&sync()) +
                                              kDecodeSyncBytes);
  }
  // By all consumer threads.
  HP_DEVICE void note_exchange(const DecodeExchange& exchange) const {
    static_assert(sizeof(DecodeExchange) % 4 == 0 &&
                  sizeof(DecodeExchange) <= kDecodeExchangeBytes);
    const auto* const from = reinterpret_cast<const std::uint32_t*>(&exchange);
    auto* const to = reinterpret_cast<std::uint32_t*>(&this->exchange());
    for (unsigned i = threadIdx.x; i < sizeof(DecodeExchange) / 4; i += kDecodeConsumers) {
      to[i] = from[i];
    }
  }

  // By one warp.
  HP_DEVICE void init_barriers() const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    DecodeSync& shared = sync();
    if (lane < kConfig.slots) {
      init_barrier(&shared.filled[lane], 1);
      init_barrier(&shared.emptied[lane], kDecodeWarps);
    }
    if (lane < kPieces) {
      init_barrier(&shared.piece_filled[lane], 1);
      init_barrier(&shared.piece_emptied[lane], kDecodeWarps);
    }
    fence_barrier_init();
  }

 private:
  std::uint8_t* base_;
};

}  // namespace harpe::device
