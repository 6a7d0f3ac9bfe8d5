#pragma once

#include "exec/cuda/device/divisor.h"

// How blocks share a GEMM of few rows: all K blocks of all tiles of B's columns, one tile after the
// other, are cut into as many streams of equal length as there are blocks. A tile may so be cut
// along K into parts of consecutive streams. The stream of the last part owns the tile: it adds up
// the parts. A stream walks what it has from its end to its beginning, so that the one part that it
// leaves to another is its first work, and the part it waits for the last.
// A stream may be shared by several blocks, a cluster: each has a share of K of every part.
namespace harpe::device {

// What a panel of `rows` rows takes of the tile: a multiple of 8.
HP_SHARED_CODE int box_rows(int rows) {
  constexpr int kAlign = 8;
  return ceil_div(rows, kAlign) * kAlign;
}

// Where stream `stream` of `streams` begins, in blocks. Requires: blocks * streams fits.
HP_SHARED_CODE int stream_begin(int blocks, int stream, const Divisor& streams) {
  return blocks * stream / streams;
}

// The stream that has block `block` of `blocks`. Requires: no more streams than blocks.
HP_SHARED_CODE int stream_of(int block, int blocks, int streams) {
  return ((block + 1) * streams - 1) / blocks;
}

// Rows that are staged together, and parts of other streams that a thread looks for at once.
HP_SHARED_CODE int staged_rows(int tile_m) { return tile_m <= 64 ? tile_m : tile_m / 2; }
HP_SHARED_CODE int parts_at_once(int tile_m) { return tile_m <= 32 ? 4 : 128 / tile_m; }

// Panels at most, and warps of a block that share their rows out.
inline constexpr int kMostRowPanels = 16;
inline constexpr int kRowWarps = 3;

// At most so many K blocks of all tiles, of at most so many streams.
inline constexpr int kMostStreamedBlocks = 1 << 21;
inline constexpr int kMostStreams = 1 << 9;
// Blocks of a stream at most.
inline constexpr int kMostStreamBlocks = 8;

// What one stream does, in order: blocks [first, last) of a tile at a time.
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
        begin_(stream_begin(blocks_, stream, streams)) {
    locate(stream_begin(blocks_, stream + 1, streams));
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
  // Of these the block has [own_first, own_last), none where there are too few.
  [[nodiscard]] HP_SHARED_CODE int own_first() const {
    return first_ + stream_begin(last_ - first_, share_, shares_);
  }
  [[nodiscard]] HP_SHARED_CODE int own_last() const {
    return first_ + stream_begin(last_ - first_, share_ + 1, shares_);
  }
  // Which of the stream's blocks this is.
  [[nodiscard]] HP_SHARED_CODE int share() const { return share_; }
  [[nodiscard]] HP_SHARED_CODE int shares() const { return shares_.number; }
  // Else what was summed is left to the tile's owner.
  [[nodiscard]] HP_SHARED_CODE bool is_owner() const { return last_ == tile_blocks_.number; }
  // The streams from this one to the one before the owner have the tile's other parts.
  [[nodiscard]] HP_SHARED_CODE int first_stream() const {
    return stream_of(tile_ * tile_blocks_.number, blocks_, streams_.number);
  }

 private:
  // What ends at block `end` of all.
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
