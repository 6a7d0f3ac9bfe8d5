#pragma once

#include "exec/cuda/device/types.h"

// Which tiles of keys a tile of queries reads, in which order. Pure; the same on host and device.
//
// Keys come as chunks, in the order they are to be consumed; each lies at consecutive logical
// positions. A query at position p sees keys at positions <= p where `causal`, and at positions
// p - window + 1 to p where `window` > 0. Either alignment of such a mask is a choice of positions.
namespace harpe::device {

struct KvExtent {
  int rows;
  int position;  // logical, of the first row
};

struct KvMask {
  bool causal;
  int window;  // where > 0, the most keys that a query sees, its own position's among them

  [[nodiscard]] HP_SHARED_CODE bool bounded() const { return causal || window > 0; }
};

// Logical positions of a tile's queries, both ends included.
struct QuerySpan {
  int first;
  int last;
};

// What a walk goes over.
struct KvView {
  KvMask mask;
  QuerySpan queries;
  int chunks;   // how many
  int columns;  // of a tile
};

// Rows of one chunk that at least one of the queries sees: [begin, end).
struct KvRange {
  int begin;
  int end;
};

struct KvTile {
  int chunk;
  int row;       // in the chunk, of the first column
  int columns;   // that exist; the rest lies behind the chunk's end
  int position;  // logical, of the first column
  bool masked;   // some query does not see some of the tile's columns
};

HP_SHARED_CODE int smaller(int a, int b) { return a < b ? a : b; }
HP_SHARED_CODE int larger(int a, int b) { return a > b ? a : b; }

HP_SHARED_CODE KvRange visible_rows(const KvExtent& chunk, const KvMask& mask,
                                    const QuerySpan& queries) {
  KvRange range{0, chunk.rows};
  if (mask.bounded()) range.end = smaller(range.end, queries.last + 1 - chunk.position);
  if (mask.window > 0) {
    range.begin = larger(0, queries.first - mask.window + 1 - chunk.position);
  }
  return range;
}

// Goes over the tiles of keys that the queries of `view` see. Where they see none there is one tile
// behind the end of chunk 0, of zeros, all masked: so every tile of queries has a tile of keys.
// Reads `chunks` and `view` anew each time: these need not be kept in registers.
class KvWalk {
 public:
  HP_SHARED_CODE KvWalk(const KvExtent* chunks, const KvView& view) : chunks_(chunks), view_(view) {
    seek();
    if (done()) chunk_ = kNothing;
  }

  [[nodiscard]] HP_SHARED_CODE bool done() const { return chunk_ == view_.chunks; }

  // Of the tile in turn; -1 where that is the one of zeros.
  [[nodiscard]] HP_SHARED_CODE int chunk() const { return chunk_; }

  [[nodiscard]] HP_SHARED_CODE KvTile tile() const {
    if (chunk_ == kNothing) return {0, chunks_[0].rows, 0, chunks_[0].position, true};
    const KvExtent& chunk = chunks_[chunk_];
    const int position = chunk.position + row_;
    const int columns = smaller(view_.columns, chunk.rows - row_);
    bool masked = columns < view_.columns;
    if (view_.mask.bounded()) masked |= position + columns - 1 > view_.queries.first;
    if (view_.mask.window > 0) masked |= position <= view_.queries.last - view_.mask.window;
    return {chunk_, row_, columns, position, masked};
  }

  HP_SHARED_CODE void advance() {
    if (chunk_ == kNothing) {
      chunk_ = view_.chunks;
      return;
    }
    row_ += view_.columns;
    if (row_ < end_) return;
    ++chunk_;
    seek();
  }

 private:
  // From `chunk_` on, the first chunk with visible rows.
  HP_SHARED_CODE void seek() {
    for (; chunk_ < view_.chunks; ++chunk_) {
      const KvRange range = visible_rows(chunks_[chunk_], view_.mask, view_.queries);
      if (range.begin >= range.end) continue;
      row_ = range.begin / view_.columns * view_.columns;
      end_ = range.end;
      return;
    }
  }

  static constexpr int kNothing = -1;

  const KvExtent* chunks_;
  const KvView& view_;
  int chunk_ = 0;  // kNothing: the one tile of zeros
  int row_ = 0;
  int end_ = 0;
};

}  // namespace harpe::device
