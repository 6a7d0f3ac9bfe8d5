#pragma once

#include "exec/cuda/kernels/attention/device/kv_walk.h"

// The work of each thread block of attention backward, its order, and the order in which blocks add
// to the same dq. Pure; the same on host and device.
//
// A block computes dk and dv of a key tile, or a part of them. Step by step it meets all query
// tiles that see the key tile, each with all query heads. Every key tile that a query tile sees
// adds to its dq, always in the same order, so the bits do not depend on scheduling.
namespace harpe::device {

inline constexpr int kKeyTile = 128;
inline constexpr int kQueryTile = 64;

// Query r and key c see each other iff low <= c - r <= high.
struct BackwardBand {
  int low;
  int high;
};

struct BackwardGrid {
  int queries;
  int keys;
  int kv_heads;
  int slices;             // batch entries x key heads
  int heads_per_kv_head;  // query heads
  int key_tiles;
  int query_tiles;
  // Several blocks may share a key tile: each of head_parts takes some query heads, and each of
  // tile_parts within these some query tiles.
  int head_parts;
  int tile_parts;
  int slices_per_group;  // slices that run together, so that their queries stay in the L2 cache
  bool first_sees_most;  // the first key tile meets at least as many query tiles as the last
  BackwardBand band;

  [[nodiscard]] HP_SHARED_CODE int parts() const { return head_parts * tile_parts; }
};

struct TileRange {
  int begin;
  int end;
};

// The work of a block. `place`: index of its key tile in the order in which these add to dq.
struct BackwardItem {
  int place;
  int slice;
  int part;
};

HP_SHARED_CODE int backward_items(const BackwardGrid& grid) {
  return grid.key_tiles * grid.slices * grid.parts();
}

// The work of a ticket: key tiles in order of place, those that meet most queries first; for each
// place all slices of a group, for each slice all parts. A block waits only for lower tickets.
HP_SHARED_CODE BackwardItem backward_item(const BackwardGrid& grid, int ticket) {
  const int of_slice = grid.key_tiles * grid.parts();
  const int group = ticket / (of_slice * grid.slices_per_group);
  const int first_slice = group * grid.slices_per_group;
  const int slices = smaller(grid.slices_per_group, grid.slices - first_slice);
  const int in_group = ticket - first_slice * of_slice;
  const int place = in_group / (slices * grid.parts());
  const int in_place = in_group - place * slices * grid.parts();
  const int slice = in_place / grid.parts();
  return {place, first_slice + slice, in_place - slice * grid.parts()};
}

HP_SHARED_CODE int tile_of_place(const BackwardGrid& grid, int place) {
  return grid.first_sees_most ? place : grid.key_tiles - 1 - place;
}

HP_SHARED_CODE int clamped(int value, int low, int high) {
  return value < low ? low : smaller(value, high);
}

// The query tiles that a key tile meets: those that see it. So that every query tile is met, the
// first key tile also meets all query tiles before these, and the last one all after these.
HP_SHARED_CODE TileRange met_queries(const BackwardGrid& grid, int tile) {
  const int first_query = tile * kKeyTile - grid.band.high;
  const int last_query = tile * kKeyTile + kKeyTile - 1 - grid.band.low;
  const int beyond = grid.query_tiles;
  const int seen = first_query >= grid.queries ? beyond : clamped(first_query >> 6, 0, beyond);
  const int begin = tile == 0 ? 0 : seen;
  const int end = tile == grid.key_tiles - 1 ? beyond : clamped((last_query >> 6) + 1, 0, beyond);
  return {begin, larger(begin, end)};
}

// The key tiles that meet a query tile.
HP_SHARED_CODE TileRange meeting_keys(const BackwardGrid& grid, int query_tile) {
  const int last_query = smaller(query_tile * kQueryTile + kQueryTile, grid.queries) - 1;
  const int first_key = query_tile * kQueryTile + grid.band.low;
  const int last = grid.key_tiles - 1;
  const int begin = clamped(first_key >> 7, 0, last);
  return {begin, clamped((last_query + grid.band.high) >> 7, begin, last) + 1};
}

inline constexpr int kMostBackwardSteps = 1 << 24;  // the most steps of a key tile

HP_SHARED_CODE TileRange part_of(const TileRange& all, int part, int parts) {
  const int count = all.end - all.begin;
  return {all.begin + count * part / parts, all.begin + count * (part + 1) / parts};
}

// The steps of a block: query tiles, each with all of the block's heads. All blocks begin with the
// queries that see every key tile, so that they reach the same queries at about the same time.
struct BackwardSteps {
  TileRange queries;
  int first_head;  // among the heads that share the keys
  int heads;

  [[nodiscard]] HP_SHARED_CODE int count() const { return (queries.end - queries.begin) * heads; }
};

HP_SHARED_CODE BackwardSteps backward_steps(const BackwardGrid& grid, int place, int part) {
  const TileRange met = met_queries(grid, tile_of_place(grid, place));
  const int head_part = part / grid.tile_parts;
  const int heads = grid.heads_per_kv_head / grid.head_parts;
  return {part_of(met, part - head_part * grid.tile_parts, grid.tile_parts), head_part * heads,
          heads};
}

// A block's work and its steps; all its roles read it.
struct BackwardWork {
  BackwardItem item;
  BackwardSteps all;
  int count;  // number of steps
  int batch;
  int kv_head;
  int key;  // the first key
};

HP_SHARED_CODE BackwardWork backward_work(const BackwardGrid& grid, int ticket) {
  const BackwardItem item = backward_item(grid, ticket);
  const BackwardSteps all = backward_steps(grid, item.place, item.part);
  const int batch = item.slice / grid.kv_heads;
  return {item,
          all,
          all.count(),
          batch,
          item.slice - batch * grid.kv_heads,
          tile_of_place(grid, item.place) * kKeyTile};
}

struct BackwardStep {
  int head;  // among the heads that share the keys
  int query_tile;
};

HP_SHARED_CODE BackwardStep step_at(const BackwardSteps& all, int step) {
  const int at = step / all.heads;
  return {all.first_head + step - at * all.heads, all.queries.end - 1 - at};
}

// The places of the key tiles that meet a query tile; they add to its dq in this order.
HP_SHARED_CODE TileRange meeting_places(const BackwardGrid& grid, int query_tile) {
  const TileRange keys = meeting_keys(grid, query_tile);
  if (grid.first_sees_most) return keys;
  return {grid.key_tiles - keys.end, grid.key_tiles - keys.begin};
}

// Whether a query of the tile does not see one of the keys, or a key or query does not exist.
HP_SHARED_CODE bool is_cut(const BackwardGrid& grid, int key, int keys, int query) {
  const int last_key = key + keys - 1;
  const int last_query = query + kQueryTile - 1;
  return last_key >= grid.keys || last_query >= grid.queries || key - last_query < grid.band.low ||
         last_key - query > grid.band.high;
}

}  // namespace harpe::device
