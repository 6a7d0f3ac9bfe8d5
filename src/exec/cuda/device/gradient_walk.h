#pragma once

#include "exec/cuda/device/attention_order.h"

// Which rows a block of attention's gradients makes, and which columns they meet. Pure; the same on
// host and device.
namespace harpe::device {

// Row r and column c see each other iff low <= c - r <= high.
struct GradientBand {
  int low;
  int high;
};

// One side's rows, over all slices (batch entries x heads of that side).
struct GradientRows {
  int rows;
  int columns;  // rows of the other side
  int heads;
  int slices;
  int slices_per_group;  // that are worked on at a time, so that their columns stay in the cache
  int tiles;             // of rows, of a slice
  bool first_sees_most;  // where rows see unequally many columns
  GradientBand band;
};

struct GradientTile {
  int row;  // the first
  int head;
  int batch;
};

// Columns [begin, end).
struct ColumnRange {
  int begin;
  int end;
};

// Rows that see most come first, so that the last blocks are short.
HP_SHARED_CODE GradientTile gradient_tile(const GradientRows& side, int ticket, int rows_of_tile) {
  const AttentionTicket work =
      attention_ticket(ticket, side.tiles, side.slices, side.slices_per_group);
  const int tile = side.first_sees_most ? side.tiles - 1 - work.tile : work.tile;
  const int batch = work.slice / side.heads;
  return {tile * rows_of_tile, work.slice - batch * side.heads, batch};
}

// What at least one of rows [first, first + count) sees; begin <= end.
HP_SHARED_CODE ColumnRange seen_columns(const GradientRows& side, int first, int count) {
  const int last = smaller(first + count, side.rows) - 1;
  const int begin = smaller(larger(first + side.band.low, 0), side.columns);
  const int end = smaller(last + side.band.high + 1, side.columns);
  return {begin, larger(begin, end)};
}

struct StepRange {
  int begin;
  int end;
};

// Of so many steps that several blocks share.
HP_SHARED_CODE StepRange steps_of_part(int steps, int part, int parts) {
  const auto cut = [&](int at) { return static_cast<int>(std::int64_t{steps} * at / parts); };
  return {cut(part), cut(part + 1)};
}

// Whether some of rows [first, first + count) do not see some of the columns of a tile, or columns
// do not exist.
HP_SHARED_CODE bool is_cut(const GradientRows& side, int first, int count, int column, int tile) {
  const int last = first + count - 1;
  return column + tile > side.columns || column < last + side.band.low ||
         column + tile - 1 > first + side.band.high;
}

}  // namespace harpe::device
