#pragma once

#include "exec/cuda/kernels/gemm/device/gemm_args.h"

// Which cluster computes which tiles, and in which order. These are pure functions: every role of
// the kernel evaluates them itself, so the roles never exchange tile coordinates.
namespace harpe::device {

struct TilePlace {
  int row;     // in cluster tiles of the panel
  int column;  // in tiles of N
};

// The place of tile `index`. Tile rows form bands of `group` rows and `band` tiles; a band is
// walked column by column, so that tiles that run at once share rows of A and columns of B in the
// L2 cache. height_of(row): rows of the band that begins at `row`; the last band may have fewer.
template <class Number, class HeightOf>
HP_SHARED_CODE TilePlace place_of(int index, int group, const Number& band, HeightOf height_of) {
  const int first = index / band * group;
  const int inside = index % band;
  const auto height = height_of(first);
  return {.row = first + inside % height, .column = inside / height};
}

// A tile, or one of `parts` equal parts of its K blocks.
struct GemmUnit {
  int tile;
  int part;
  int parts;
};

// Units 0 .. full_tiles - 1 are whole tiles. The parts of the remaining tiles follow them.
HP_SHARED_CODE GemmUnit unit_at(int unit, int full_tiles, const Divisor& parts) {
  if (unit < full_tiles) return {.tile = unit, .part = 0, .parts = 1};
  const int rest = unit - full_tiles;
  return {.tile = full_tiles + rest / parts, .part = rest % parts, .parts = parts.number};
}

HP_SHARED_CODE int unit_count(int tiles, int full_tiles, int parts) {
  return full_tiles + (tiles - full_tiles) * parts;
}

}  // namespace harpe::device
