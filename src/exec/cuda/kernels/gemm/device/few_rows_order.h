#pragma once

#include "exec/cuda/device/divisor.h"
#include "exec/cuda/device/shares.h"

// How thread blocks share a GEMM of few rows. A tile is all rows by tile_n columns of B. The K
// blocks of all tiles, one tile after the other, are cut into streams of equal length. This may cut
// a tile along K into parts of consecutive streams. The stream with the last part owns the tile and
// adds up its parts. A stream walks its K blocks from the end: the only part that it leaves to
// another owner is its first work, and the tile for which it waits for others' parts its last.
// A cluster of several thread blocks may share a stream: each takes a share of K of every part.
namespace harpe::device {

// Rows of the tile that a panel of `rows` rows occupies: a multiple of 8.
HP_SHARED_CODE int box_rows(int rows) {
  constexpr int kAlign = 8;
  return ceil_div(rows, kAlign) * kAlign;
}

// Rows that are staged together, and parts of other streams that a thread loads in one poll.
HP_SHARED_CODE int staged_rows(int tile_m) { return tile_m <= 64 ? tile_m : tile_m / 2; }
HP_SHARED_CODE int parts_at_once(int tile_m) { return tile_m <= 32 ? 4 : 128 / tile_m; }

// The most panels, and the warps of a thread block that divide the loads of their rows.
inline constexpr int kMostRowPanels = 16;
inline constexpr int kRowWarps = 3;

// Addends whose places a thread block copies to its shared memory.
inline constexpr int kMostNotedAddends = 8;

// Limits: K blocks of all tiles, thread blocks of all streams, thread blocks of one stream.
inline constexpr int kMostStreamedBlocks = 1 << 21;
inline constexpr int kMostStreams = 1 << 9;
inline constexpr int kMostStreamBlocks = 8;

// The parts of one stream in order: K blocks [first, last) of one tile at a time.
class StreamWalk {
 public:
  HP_SHARED_CODE StreamWalk(int tiles, const Divisor& tile_blocks, int stream,
                            const Divisor& streams, int share, const Divisor& shares)
      : tile_blocks_(tile_blocks),
        streams_(streams),
        stream_(stream),
        share_(share),
        shares_(shares),
        blocks_(tiles * tile_blocks.number),
        begin_(share_begin(blocks_, stream, streams)) {
    locate(share_begin(blocks_, stream + 1, streams));
  }

  [[nodiscard]] HP_SHARED_CODE bool valid() const { return valid_; }
  [[nodiscard]] HP_SHARED_CODE bool is_last() const {
    return tile_ * tile_blocks_.number + first_ == begin_;
  }
  HP_SHARED_CODE void next() { locate(tile_ * tile_blocks_.number + first_); }

  [[nodiscard]] HP_SHARED_CODE int stream() const { return stream_; }
  [[nodiscard]] HP_SHARED_CODE int tile() const { return tile_; }
  [[nodiscard]] HP_SHARED_CODE int first() const { return first_; }
  [[nodiscard]] HP_SHARED_CODE int last() const { return last_; }
  // This thread block's share of them is [own_first, own_last), which may be empty.
  [[nodiscard]] HP_SHARED_CODE int own_first() const {
    return first_ + share_begin(last_ - first_, share_, shares_);
  }
  [[nodiscard]] HP_SHARED_CODE int own_last() const {
    return first_ + share_begin(last_ - first_, share_ + 1, shares_);
  }
  // The index of this thread block in its stream.
  [[nodiscard]] HP_SHARED_CODE int share() const { return share_; }
  [[nodiscard]] HP_SHARED_CODE int shares() const { return shares_.number; }
  // Whether this stream owns the tile; if not, it leaves its sums to the owner.
  [[nodiscard]] HP_SHARED_CODE bool is_owner() const { return last_ == tile_blocks_.number; }
  // The first stream with a part of the tile; the owner is the last.
  [[nodiscard]] HP_SHARED_CODE int first_stream() const {
    return share_of(tile_ * tile_blocks_.number, blocks_, streams_.number);
  }

 private:
  // Sets the part whose last K block precedes block `end`, counted over all tiles.
  HP_SHARED_CODE void locate(int end) {
    valid_ = end > begin_;
    if (!valid_) return;
    tile_ = (end - 1) / tile_blocks_;
    const int origin = tile_ * tile_blocks_.number;
    last_ = end - origin;
    first_ = begin_ > origin ? begin_ - origin : 0;
  }

  Divisor tile_blocks_;
  Divisor streams_;
  int stream_;
  int share_;
  Divisor shares_;
  int blocks_;
  int begin_;
  int tile_ = 0;
  int first_ = 0;
  int last_ = 0;
  bool valid_ = false;
};

}  // namespace harpe::device
