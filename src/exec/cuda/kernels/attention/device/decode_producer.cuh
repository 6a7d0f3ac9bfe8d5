#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/shares.h"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/kernels/attention/device/decode_shared.cuh"

// The producer warp. It alone reads lengths and pages, walks the block's share of all key tiles,
// one pair after the other, and describes each part and tile to the consumers.
namespace harpe::device {

template <DecodeConfig kConfig>
class DecodeProducer {
 public:
  HP_DEVICE DecodeProducer(const DecodeArgs& args, DecodeShared<kConfig> shared)
      : args_(args),
        shared_(shared),
        sync_(shared.sync()),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  // Walks from the end of the share, so that the state left to another block is made first. Keys
  // that no kernel writes are loaded before the preceding kernel of the stream has ended. The first
  // tile of a piece comes before its description, which takes longer to make.
  HP_DEVICE void run() {
    if (args_.keys_are_fixed == 0) await_kernel_before();
    find_share();
    while (begin_ < end_) {
      const int from = begin_ > pair_begin_ ? begin_ - pair_begin_ : 0;
      const int tiles = end_ - pair_begin_ - from;
      load_piece(from, tiles);
      end_ = pair_begin_ + from;
      if (begin_ < end_) step_back();
    }
    describe_piece(0);
  }

 private:
  using Index = std::int64_t;
  static constexpr int kTile = DecodeShared<kConfig>::kTile;
  static constexpr int kBoxes = kConfig.head_dim / 64;
  static constexpr bool kCuts = cuts_heads(kConfig);

  HP_DEVICE static int smaller(int a, int b) { return a < b ? a : b; }
  HP_DEVICE static int clamped(Index value, int most) {
    return static_cast<int>(value < 0 ? 0 : (value > most ? most : value));
  }

  // The keys of a sequence on this rank; with pages, its keys on all ranks.
  HP_DEVICE int keys_of(int batch) const {
    const DecodeTables& tables = args_.tables;
    const bool paged = tables.pages != nullptr;
    const int most = paged ? tables.page_count * tables.page.number : args_.keys_per_sequence;
    if (tables.lengths == nullptr) return most;
    const Index length = tables.lengths[batch * tables.length_stride];
    return clamped(paged ? length : length - tables.first_key, most);
  }
  // A sequence without keys gets one tile without visible keys, so that its result is stored.
  HP_DEVICE static int tiles_of(int keys) { return keys == 0 ? 1 : ceil_div(keys, kTile); }

  HP_DEVICE void find_share() {
    if (args_.tables.lengths == nullptr) {
      keys_ = keys_of(0);
      take_share(args_.tiles.number * args_.kv_heads.number * args_.batch);
      const int pair = (end_ - 1) / args_.tiles;
      batch_ = pair / args_.kv_heads;
      head_ = pair % args_.kv_heads;
      if constexpr (kCuts) {
        cut_ = batch_ / args_.cuts.sequences;
        batch_ = batch_ % args_.cuts.sequences;
      }
      pair_begin_ = pair * args_.tiles.number;
      return;
    }
    int sum = 0;
#pragma unroll 4
    for (int batch = lane_; batch < args_.batch; batch += 32) sum += tiles_of(keys_of(batch));
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, lanes);
    take_share(sum * args_.kv_heads.number);
    if constexpr (kCuts) {
      if (begin_ < end_) cut_ = (end_ - 1) / (sum * args_.kv_heads.number);
      pair_begin_ = cut_ * sum * args_.kv_heads.number;
    }
    if (begin_ < end_) find_sequence();
  }

  // Share i begins at tile i * tiles / shares; with fewer tiles than thread blocks it is tile i.
  // `tiles`: of one head group of each key head.
  HP_DEVICE void take_share(int tiles) {
    if constexpr (kCuts) tiles *= args_.cuts.cuts.number;
    tiles_ = tiles;
    shares_ = smaller(tiles, args_.shares.number);
    const auto block = static_cast<int>(blockIdx.x);
    if (block >= shares_) return;
    const bool is_tile = tiles < args_.shares.number;
    const int each = is_tile ? 1 : tiles / args_.shares;
    const int rest = is_tile ? 0 : tiles % args_.shares;  // apart, so that products fit in 32 bits
    begin_ = block * each + share_begin(rest, block, args_.shares);
    end_ = (block + 1) * each + share_begin(rest, block + 1, args_.shares);
  }

  // Finds the sequence in which the share ends, by a prefix sum over 32 sequences at a time. Starts
  // at `pair_begin_`, the first tile of the cut.
  HP_DEVICE void find_sequence() {
    int before = pair_begin_;
    for (int first = 0;; first += 32) {
      const int batch = first + lane_;
      const int keys = batch < args_.batch ? keys_of(batch) : 0;
      const int tiles = batch < args_.batch ? tiles_of(keys) * args_.kv_heads.number : 0;
      int upto = tiles;
#pragma unroll
      for (int lanes = 1; lanes < 32; lanes *= 2) {
        const int other = __shfl_up_sync(0xFFFFFFFF, upto, lanes);
        if (lane_ >= lanes) upto += other;
      }
      const std::uint32_t beyond = __ballot_sync(0xFFFFFFFF, before + upto >= end_);
      if (beyond != 0) {
        const int lane = __ffs(static_cast<int>(beyond)) - 1;
        const int start = before + __shfl_sync(0xFFFFFFFF, upto - tiles, lane);
        batch_ = first + lane;
        keys_ = __shfl_sync(0xFFFFFFFF, keys, lane);
        head_ = (end_ - 1 - start) / tiles_of(keys_);
        pair_begin_ = start + head_ * tiles_of(keys_);
        return;
      }
      before += __shfl_sync(0xFFFFFFFF, upto, 31);
    }
  }

  HP_DEVICE void step_back() {
    if (--head_ < 0) {
      head_ = args_.kv_heads.number - 1;
      if constexpr (kCuts) {
        if (batch_ == 0) {
          batch_ = args_.batch;
          --cut_;
        }
      }
      keys_ = keys_of(--batch_);
    }
    pair_begin_ -= tiles_of(keys_);
  }

  // share_of, whose product needs 64 bits: an estimate, and what it lacks. The kernel has few
  // blocks.
  HP_DEVICE int block_of(int tile) const {
    const Index product = Index{tile + 1} * shares_ - 1;
    int block =
        static_cast<int>(__fdividef(static_cast<float>(product), static_cast<float>(tiles_)));
    const Index rest = product - Index{block} * tiles_;
    if (rest < 0) --block;
    if (rest >= tiles_) ++block;
    return block;
  }

  [[nodiscard]] HP_DEVICE int group() const {
    if constexpr (kCuts) return head_ * args_.cuts.cuts.number + cut_;
    return head_;
  }

  HP_DEVICE void describe_piece(int tiles) {
    wait_barrier(&sync_.piece_emptied[pieces_.slot], pieces_.parity ^ 1);
    if (lane_ == 0) {
      DecodePiece piece{.sequence = batch_, .group = group(), .tiles = tiles};
      if (tiles > 0) {
        const int first = block_of(pair_begin_);
        piece.first = first;
        piece.part = static_cast<int>(blockIdx.x) - first;
        piece.parts = block_of(pair_begin_ + tiles_of(keys_) - 1) - first + 1;
        piece.bunch = parts_of_bunch(piece.parts);
        piece.lower = piece.part % piece.bunch;
      }
      sync_.pieces[pieces_.slot] = piece;
      arrive(&sync_.piece_filled[pieces_.slot]);
    }
    __syncwarp();
    pieces_.advance();
  }

  // The lane's box of a tile: its first row in the storage, and the rows [begin, end) that exist.
  struct Box {
    int row;
    int begin;
    int end;
  };

  // The page of the lane's box of a tile; -1 without pages, without a box, or beyond the keys.
  HP_DEVICE int page_of(int tile) const {
    const DecodeTables& tables = args_.tables;
    const int key = tile * kTile + lane_ * args_.box_rows;
    if (tables.pages == nullptr || key >= keys_ || lane_ >= args_.boxes) return -1;
    return tables.pages[batch_ * tables.sequence_stride + key / tables.page * tables.page_stride];
  }

  HP_DEVICE Box box_of(int tile, int page) const {
    const int key = tile * kTile + lane_ * args_.box_rows;
    if (lane_ >= args_.boxes) return {0, 0, 0};
    Box box{key, 0, clamped(keys_ - key, args_.box_rows)};
    if (args_.tables.pages == nullptr) return box;
    if (page < 0) return {0, 0, 0};
    const Index row =
        Index{page} * args_.tables.page.number + key % args_.tables.page - args_.tables.first_key;
    const int here = clamped(args_.keys_per_sequence - row, args_.box_rows);
    box.row = static_cast<int>(row);
    box.begin = clamped(-row, args_.box_rows);
    box.end = smaller(box.end, here);
    return box;
  }

  HP_DEVICE void load_piece(int first, int tiles) {
    int page = page_of(first);
    for (int tile = first; tile < first + tiles; ++tile) {
      const Box box = box_of(tile, page);
      if (tile + 1 < first + tiles) page = page_of(tile + 1);
      load(args_.keys, box);
      if constexpr (!values_in_keys(kConfig)) load(args_.values, box);
      if (tile == first) describe_piece(tiles);
    }
  }

  HP_DEVICE void load(const TensorMap& map, const Box& box) {
    const bool loads = box.begin < box.end;
    const int boxes = __popc(__ballot_sync(0xFFFFFFFF, loads));
    Barrier* const filled = &sync_.filled[ring_.slot];
    wait_barrier(&sync_.emptied[ring_.slot], ring_.parity ^ 1);
    describe(box);
    __syncwarp();
    const int bytes = args_.box_rows * 128;
    if (lane_ == 0) arrive_expecting(filled, static_cast<std::uint32_t>(boxes * kBoxes * bytes));
    __syncwarp();
    if (loads) {
      std::uint8_t* const to = shared_.slot(ring_.slot) + lane_ * bytes;
#pragma unroll
      for (int i = 0; i < kBoxes; ++i) {
        if constexpr (kCuts) {
          // Blocks of other cuts read the same keys, and should find them in the L2 cache.
          if (args_.cuts.cuts.number > 1) {
            load_tile(to + i * DecodeShared<kConfig>::kBox, &map, filled, i * 64, head_, box.row,
                      batch_ * args_.batch_step);
            continue;
          }
        }
        load_tile_once(to + i * DecodeShared<kConfig>::kBox, &map, filled, i * 64, head_, box.row,
                       batch_ * args_.batch_step);
      }
    }
    ring_.advance();
  }

  HP_DEVICE void describe(const Box& box) {
    DecodeStep& step = sync_.steps[ring_.slot];
    const bool whole = lane_ >= args_.boxes || box.end - box.begin == args_.box_rows;
    const bool all = __all_sync(0xFFFFFFFF, whole);
    if (lane_ == 0) step.all = all ? 1 : 0;
    if (all) return;
#pragma unroll
    for (int word = 0; word < kTile / 32; ++word) {
      const int offset = lane_ * args_.box_rows - word * 32;
      const std::uint32_t seen = below(box.end + offset) & ~below(box.begin + offset);
      const std::uint32_t together = __reduce_or_sync(0xFFFFFFFF, box.begin < box.end ? seen : 0U);
      if (lane_ == 0) step.seen[word] = together;
    }
  }
  // Bits of all positions below `position`.
  HP_DEVICE static std::uint32_t below(int position) {
    if (position <= 0) return 0;
    return position >= 32 ? 0xFFFFFFFFU : (1U << position) - 1;
  }

  const DecodeArgs& args_;
  DecodeShared<kConfig> shared_;
  DecodeSync& sync_;
  int lane_;
  int tiles_ = 0;  // of all pairs
  int shares_ = 0;
  int begin_ = 0;       // first tile of the share
  int end_ = 0;         // end of the share's tiles that remain
  int pair_begin_ = 0;  // first tile of the current pair
  int batch_ = 0;
  int head_ = 0;  // key head
  int cut_ = 0;
  int keys_ = 0;  // of the current sequence
  Ring<pieces_ahead(kConfig)> pieces_;
  Ring<kConfig.slots> ring_;
};

}  // namespace harpe::device
