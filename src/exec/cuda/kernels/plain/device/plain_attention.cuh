#pragma once

#include "exec/cuda/kernels/plain/device/plain_labels.cuh"
#include "exec/cuda/kernels/plain/device/plain_rows.cuh"

// Attention with heads of any size, on the CUDA cores. A thread block has 16 queries of a head. It
// computes kPlainSlice value columns at a time and all scores again for each slice.
namespace harpe::device {

template <class Real>
struct PlainState {
  Real max[kRowsOfWarp];
  Real sum[kRowsOfWarp];
  Real output[kRowsOfWarp][kColumnsOfLane];
};

// The results of one head.
template <class Real>
struct PlainResults {
  Real* o;
  Real* lse;
};

// A head: byte offsets of its operands, its mask's tables, and labels of the warp's queries.
struct PlainHead {
  std::int64_t q, k, v;
  PlainTables tables;
  std::int64_t labels[kRowsOfWarp];
};

// Starts from the carried state, which acts like one key with score lse and value o.
template <class Real>
HP_DEVICE void begin_state(const PlainAttentionArgs& args, const PlainResults<Real>& results,
                           std::int64_t query, std::int64_t column, PlainState<Real>& state) {
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const std::int64_t row = query + warp_row() + i;
    const bool carried = args.carry && row < args.queries;
    state.max[i] = carried ? results.lse[row * args.lse_stride] : none<Real>();
    state.sum[i] = state.max[i] == none<Real>() ? Real(0) : Real(1);
#pragma unroll
    for (int j = 0; j < kColumnsOfLane; ++j) {
      const std::int64_t at = column + lane_index() + 32 * j;
      const bool exists = state.sum[i] != 0 && at < args.value_dim;
      state.output[i][j] = exists ? results.o[row * args.o_row_stride + at] : Real(0);
    }
  }
}

// Turns scores into weights relative to the rows' maxima, which it updates.
template <class Real>
HP_DEVICE void weigh(const std::uint32_t (&seen)[kRowsOfWarp], Real scale,
                     Real (&scores)[kRowsOfWarp], PlainState<Real>& state) {
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const bool shown = (seen[i] >> lane_index() & 1U) != 0;
    const Real score = scores[i] * scale;
    // A NaN does not become the maximum, but it reaches the sum.
    const Real most = warp_max(shown && score == score ? score : none<Real>());
    const Real before = state.max[i];
    const Real after = most > before ? most : before;
    const Real shift = after == none<Real>() ? Real(0) : after;
    const Real factor = before == none<Real>() ? Real(0) : exponential(before - shift);
    scores[i] = shown ? exponential(score - shift) : Real(0);
    state.max[i] = after;
    state.sum[i] = state.sum[i] * factor + warp_sum(scores[i]);
#pragma unroll
    for (int j = 0; j < kColumnsOfLane; ++j) state.output[i][j] *= factor;
  }
}

template <class Real>
HP_DEVICE void store_state(const PlainAttentionArgs& args, const PlainResults<Real>& results,
                           std::int64_t query, std::int64_t column, const PlainState<Real>& state) {
  const bool last = column + kPlainSlice >= args.value_dim;  // no later slice reads lse
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const std::int64_t row = query + warp_row() + i;
    if (row >= args.queries) continue;
    const bool any = state.sum[i] != 0;
    const Real inverse = any ? 1 / state.sum[i] : Real(0);
#pragma unroll
    for (int j = 0; j < kColumnsOfLane; ++j) {
      const std::int64_t at = column + lane_index() + 32 * j;
      if (at >= args.value_dim) continue;
      results.o[row * args.o_row_stride + at] = any ? state.output[i][j] * inverse : Real(0);
    }
    if (!last || lane_index() != 0) continue;
    const double lse = static_cast<double>(state.max[i]) + log(static_cast<double>(state.sum[i]));
    results.lse[row * args.lse_stride] = any ? static_cast<Real>(lse) : none<Real>();
  }
}

// Sets the labels of the warp's queries.
HP_DEVICE void label_queries(const PlainAttentionArgs& args, const PlainTables& tables,
                             std::int64_t query, std::int64_t (&labels)[kRowsOfWarp]) {
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const std::int64_t row = query + warp_row() + i;
    labels[i] = args.tables.any ? query_label(tables, row, row < args.queries) : 0;
  }
}

// The number of runs of keys, which are processed in order: the pages of the sequence, or one.
HP_DEVICE std::int64_t count_runs(const PlainTables& tables) {
  return tables.pages.data == nullptr ? 1 : used_pages(tables);
}

// The keys of run `at` within `range`; of a page only those that exist.
HP_DEVICE PlainRange run_of(const PlainTables& tables, const PlainRange& range, std::int64_t at) {
  if (tables.pages.data == nullptr) return range;
  const std::int64_t held = entry_of(tables.pages, at);
  if (held < 0) return {0, 0};
  const std::int64_t begin = held * tables.page - tables.first_key;
  std::int64_t end = begin + tables.page;
  if (tables.length.data != nullptr) {
    const std::int64_t there = tables.length.data[0] - at * tables.page;
    if (there < tables.page) end = begin + there;
  }
  return {begin > range.begin ? begin : range.begin, end < range.end ? end : range.end};
}

// Sets in `seen`, for each query of the warp, the bits of the keys from `key` to `end` that it
// sees. With tables but without pages it returns whether any query of the block sees any of them,
// else true: all keys of a page's run exist.
HP_DEVICE bool find_seen(const PlainAttentionArgs& args, const PlainTables& tables,
                         const std::int64_t (&labels)[kRowsOfWarp], std::int64_t query,
                         std::int64_t key, std::int64_t end, std::uint32_t (&seen)[kRowsOfWarp]) {
  const std::int64_t mine = key + lane_index();
  const bool labelled = args.tables.any && tables.pages.data == nullptr;
  const std::int64_t label = labelled ? key_label(tables, mine, mine < end) : 0;
  std::uint32_t any = 0;
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const bool shown = mine < end && args.mask.shows(query + warp_row() + i, mine);
    seen[i] = __ballot_sync(~0U, shown && label == labels[i]);
    any |= seen[i];
  }
  return !labelled || __syncthreads_or(static_cast<int>(any)) != 0;
}

// Adds keys [run.begin, run.end) to the state of the block's queries.
template <class Real>
HP_DEVICE void add_run(const PlainAttentionArgs& args, const PlainHead& head, const PlainRange& run,
                       std::int64_t query, std::int64_t column, PlainTiles<Real>& tiles,
                       PlainState<Real>& state) {
#pragma unroll 1
  for (std::int64_t key = run.begin; key < run.end; key += kPlainInner) {
    std::uint32_t seen[kRowsOfWarp];
    if (!find_seen(args, head.tables, head.labels, query, key, run.end, seen)) continue;
    Real scores[kRowsOfWarp];
    multiply_rows(tiles, band_of(args.q, head.q, query, args.queries),
                  band_of(args.k, head.k, key, run.end), args.head_dim, scores);
    weigh(seen, static_cast<Real>(args.scale), scores, state);
    add_weighted(tiles, band_of(args.v, head.v, key, run.end), column, args.value_dim, scores, seen,
                 state.output);
  }
}

template <class Real>
HP_DEVICE void attend_tile(const PlainAttentionArgs& args, std::int64_t query, std::int64_t turn,
                           PlainTiles<Real>& tiles) {
  std::int64_t offsets[8] = {};
  add_offsets(args.nest, 0, args.nest.count, turn, offsets);
  const PlainResults<Real> results{static_cast<Real*>(moved(args.o, offsets[3])),
                                   static_cast<Real*>(moved(args.lse, offsets[4]))};
  PlainHead head{offsets[0],
                 offsets[1],
                 offsets[2],
                 tables_at(args.tables, offsets[5], offsets[6], offsets[7]),
                 {}};
  const std::int64_t last =
      query + kPlainRows < args.queries ? query + kPlainRows - 1 : args.queries - 1;
  const PlainRange range = seen_keys(args.mask, query, last, args.keys);
  label_queries(args, head.tables, query, head.labels);
  const std::int64_t runs = count_runs(head.tables);
#pragma unroll 1
  for (std::int64_t column = 0; column < args.value_dim; column += kPlainSlice) {
    PlainState<Real> state;
    begin_state(args, results, query, column, state);
#pragma unroll 1
    for (std::int64_t run = 0; run < runs; ++run) {
      add_run(args, head, run_of(head.tables, range, run), query, column, tiles, state);
    }
    store_state(args, results, query, column, state);
  }
}

// The grid may have any number of thread blocks.
template <class Real>
HP_DEVICE void plain_attention(const PlainAttentionArgs& args) {
  __shared__ PlainTiles<Real> tiles;
  const std::int64_t count = (args.queries + kPlainRows - 1) / kPlainRows;
#pragma unroll 1
  for (std::int64_t at = blockIdx.x; at < count * args.turns; at += gridDim.x) {
    const std::int64_t turn = at / count;
    attend_tile<Real>(args, (at - turn * count) * kPlainRows, turn, tiles);
  }
}

}  // namespace harpe::device
