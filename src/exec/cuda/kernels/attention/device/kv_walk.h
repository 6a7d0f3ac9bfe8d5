#pragma once

#include "exec/cuda/device/types.h"

// The key tiles that a query tile reads, and their order. Pure; the same on host and device.
//
// Keys come as chunks, in the order of use; each chunk has consecutive logical positions. A query
// at position p sees keys at positions <= p if `causal`, and at positions p - window + 1 to p if
// `window` > 0. The positions express either alignment of such a mask, top left or bottom right.
namespace harpe::device {

struct KvExtent {
  int rows;
  int position;  // logical position of the first row
};

struct KvMask {
  bool causal;
  int window;  // > 0: the most keys that a query sees, including the one at its own position

  [[nodiscard]] HP_SHARED_CODE bool bounded() const { return causal || window > 0; }
};

// Logical positions of a tile's queries, both ends included.
struct QuerySpan {
  int first;
  int last;
};

// The input of a walk.
struct KvView {
  KvMask mask;
  QuerySpan queries;
  int chunks;   // number of chunks
  int columns;  // keys of a tile
};

// The rows [begin, end) of one chunk that at least one of the queries sees.
struct KvRange {
  int begin;
  int end;
};

struct KvTile {
  int chunk;
  int row;       // row in the chunk of the first key
  int columns;   // keys that exist; the rest of the tile is beyond the chunk's end
  int position;  // logical position of the first key
  bool masked;   // some query does not see some of the tile's keys
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

// Iterates over the key tiles that the queries of `view` see. If they see none, there is one fully
// masked tile of zeros beyond the end of chunk 0, so that every query tile has a key tile. The walk
// reads `chunks` and `view` through pointers at each step, to save registers.
class KvWalk {
 public:
  HP_SHARED_CODE KvWalk(const KvExtent* chunks, const KvView& view) : chunks_(chunks), view_(view) {
    seek();
    if (done()) chunk_ = kNothing;
  }

  [[nodiscard]] HP_SHARED_CODE bool done() const { return chunk_ == view_.chunks; }

  // The chunk of the current tile; -1 for the tile of zeros.
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
  // Moves to the first chunk from `chunk_` on that has visible rows.
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
  int chunk_ = 0;  // kNothing: the tile of zeros
  int row_ = 0;
  int end_ = 0;
};

}  // namespace harpe::device
