#pragma once

#include "exec/cuda/kernels/gemm/device/gemm_args.h"

// Which cluster works on what, and in which order: pure functions that every role of the kernel
// walks alike, so that nothing about tiles is ever passed between them.
namespace harpe::device {

struct TilePlace {
  int row;     // in cluster tiles of the panel
  int column;  // in tiles of N
};

// Tile `index` of bands of `group` rows, `band` tiles each, within a band column by column. Tiles
// that run at once then share rows of A and columns of B in the L2 cache. height_of(row): rows of
// the band that begins there, fewer of the last.
template <class Number, class HeightOf>
HP_SHARED_CODE TilePlace place_of(int index, int group, const Number& band, HeightOf height_of) {
  const int first = index / band * group;
  const int inside = index % band;
  const auto height = height_of(first);
  return {.row = first + inside % height, .column = inside / height};
}

// A tile, or one of `parts` equal shares of its K blocks.
struct GemmUnit {
  int tile;
  int part;
  int parts;
};

// Units 0 .. full_tiles - 1 are whole tiles; behind them the last tiles, cut.
HP_SHARED_CODE GemmUnit unit_at(int unit, int full_tiles, const Divisor& parts) {
  if (unit < full_tiles) return {.tile = unit, .part = 0, .parts = 1};
  const int rest = unit - full_tiles;
  return {.tile = full_tiles + rest / parts, .part = rest % parts, .parts = parts.number};
}

HP_SHARED_CODE int unit_count(int tiles, int full_tiles, int parts) {
  return full_tiles + (tiles - full_tiles) * parts;
}

// K blocks [first, last) of part `part`.
HP_SHARED_CODE int part_begin(int blocks, int part, const Divisor& parts) {
  return blocks * part / parts;
}

}  // namespace harpe::device
