#pragma once

#include "exec/cuda/kernels/plain/device/plain_labels.cuh"
#include "exec/cuda/kernels/plain/device/plain_rows.cuh"

// Attention backward on the CUDA cores: with p = e^(scale q k^T - lse) and s = p (do v^T - delta),
// dq = scale s k, dk = scale s^T q, dv = p^T do. A job is 16 rows and kPlainSlice columns of one of
// them. A thread block computes all that the job needs of p and s itself, so no two blocks add to
// one result, and sums have a fixed order.
namespace harpe::device {

enum class PlainBackward : std::uint8_t { Query, Key, Value };

// A job: rows from `first` on and columns from `column` on, of iteration `turn`.
struct PlainJob {
  PlainBackward of;
  std::int64_t first;
  std::int64_t column;
  std::int64_t turn;
};

// Offsets of an iteration's operands from those of the first, in bytes.
struct PlainOffsets {
  std::int64_t q, k, v, d_o, lse, delta, dq, dk, dv, documents, length, pages;
};

// Offsets of iteration `outer` of the first `loops` loops and iteration `inner` of the rest.
HP_DEVICE PlainOffsets offsets_of(const PlainBackwardArgs& args, int loops, std::int64_t outer,
                                  std::int64_t inner) {
  std::int64_t at[12] = {};
  add_offsets(args.nest, 0, loops, outer, at);
  add_offsets(args.nest, loops, args.nest.count, inner, at);
  return {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10], at[11]};
}

HP_DEVICE std::int64_t tiles_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

HP_DEVICE PlainJob job_of(const PlainBackwardArgs& args, std::int64_t block) {
  PlainJob job{PlainBackward::Query, 0, 0, 0};
  std::int64_t rows = args.queries;
  std::int64_t columns = args.head_dim;
  if (block >= args.dq_blocks) {
    block -= args.dq_blocks;
    rows = args.keys;
    job.of = PlainBackward::Key;
    if (block >= args.dk_blocks) {
      block -= args.dk_blocks;
      columns = args.value_dim;
      job.of = PlainBackward::Value;
    }
  }
  const std::int64_t slices = tiles_of(columns, kPlainSlice);
  const std::int64_t across = slices * tiles_of(rows, kPlainRows);
  job.turn = block / across;
  job.first = block % across / slices * kPlainRows;
  job.column = block % slices * kPlainSlice;
  return job;
}

template <class Real>
HP_DEVICE Real load_value(const PlainValues& values, std::int64_t offset, std::int64_t at) {
  return load_number<Real>(moved(values.data, offset), values.number, at * values.stride);
}

// The mask data of one iteration's pairs of the warp's rows and inner rows.
struct PlainPairs {
  PlainTables tables;
  std::int64_t labels[kRowsOfWarp];  // of the warp's rows

  [[nodiscard]] HP_DEVICE std::int64_t label(bool of_query, std::int64_t at, bool exists) const {
    return of_query ? query_label(tables, at, exists) : key_label(tables, at, exists);
  }
};

HP_DEVICE PlainPairs pairs_of(const PlainBackwardArgs& args, const PlainJob& job,
                              const PlainOffsets& offsets) {
  PlainPairs pairs{tables_at(args.tables, offsets.documents, offsets.length, offsets.pages), {}};
  if (!args.tables.any) return pairs;
  const bool by_queries = job.of == PlainBackward::Query;
  const std::int64_t mine = job.first + warp_row() + lane_index() % kRowsOfWarp;
  const bool exists = mine < (by_queries ? args.queries : args.keys);
  const std::int64_t label = pairs.label(by_queries, mine, exists);
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) pairs.labels[i] = __shfl_sync(~0U, label, i);
  return pairs;
}

// Sets in `seen`, for each row of the warp, the bits of the inner rows that it pairs with. With
// tables it returns whether the block has any pair at all, else true.
HP_DEVICE bool find_pairs(const PlainBackwardArgs& args, const PlainJob& job,
                          const PlainPairs& pairs, std::int64_t inner, std::int64_t end,
                          std::uint32_t (&seen)[kRowsOfWarp]) {
  const bool by_queries = job.of == PlainBackward::Query;
  const std::int64_t mine = inner + lane_index();
  const std::int64_t rows = by_queries ? args.queries : args.keys;
  const std::int64_t label = args.tables.any ? pairs.label(!by_queries, mine, mine < end) : 0;
  std::uint32_t any = 0;
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const std::int64_t row = job.first + warp_row() + i;
    const bool shown = row < rows && mine < end && label == pairs.labels[i] &&
                       (by_queries ? args.mask.shows(row, mine) : args.mask.shows(mine, row));
    seen[i] = __ballot_sync(~0U, shown);
    any |= seen[i];
  }
  return !args.tables.any || __syncthreads_or(static_cast<int>(any)) != 0;
}

// Turns scores into p or, for dq and dk, into gradients of scores. Removes the pairs of queries
// that see nothing from `seen`.
template <class Real>
HP_DEVICE void weigh_pairs(const PlainBackwardArgs& args, const PlainJob& job,
                           const PlainOffsets& offsets, std::int64_t inner,
                           const Real (&products)[kRowsOfWarp], Real (&scores)[kRowsOfWarp],
                           std::uint32_t (&seen)[kRowsOfWarp]) {
  const bool by_queries = job.of == PlainBackward::Query;
  const auto scale = static_cast<Real>(args.scale);
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const std::int64_t query =
        by_queries ? job.first + warp_row() + i : inner + static_cast<std::int64_t>(lane_index());
    bool shown = (seen[i] >> lane_index() & 1U) != 0;
    const Real lse = shown ? load_value<Real>(args.lse, offsets.lse, query) : Real(0);
    shown = shown && lse != none<Real>();
    seen[i] = __ballot_sync(~0U, shown);
    const Real weight = exponential(scores[i] * scale - lse);
    scores[i] = weight;
    if (job.of == PlainBackward::Value) continue;
    const Real delta = shown ? load_value<Real>(args.delta, offsets.delta, query) : Real(0);
    scores[i] = weight * (products[i] - delta) * scale;
  }
}

// Adds one iteration's contribution to the job's sums.
template <class Real>
HP_DEVICE void add_turn(const PlainBackwardArgs& args, const PlainJob& job,
                        const PlainOffsets& offsets, PlainTiles<Real>& tiles,
                        Real (&sums)[kRowsOfWarp][kColumnsOfLane]) {
  const bool by_queries = job.of == PlainBackward::Query;
  const std::int64_t rows = by_queries ? args.queries : args.keys;
  const std::int64_t inner_rows = by_queries ? args.keys : args.queries;
  const std::int64_t past = job.first + kPlainRows;
  const std::int64_t last = (past < rows ? past : rows) - 1;
  const PlainRange range = by_queries ? seen_keys(args.mask, job.first, last, inner_rows)
                                      : seeing_queries(args.mask, job.first, last, inner_rows);
  const PlainBand q_or_k = by_queries ? band_of(args.q, offsets.q, job.first, rows)
                                      : band_of(args.k, offsets.k, job.first, rows);
  const PlainBand do_or_v = by_queries ? band_of(args.d_o, offsets.d_o, job.first, rows)
                                       : band_of(args.v, offsets.v, job.first, rows);
  const PlainPairs pairs = pairs_of(args, job, offsets);
#pragma unroll 1
  for (std::int64_t inner = range.begin; inner < range.end; inner += kPlainInner) {
    std::uint32_t seen[kRowsOfWarp];
    if (!find_pairs(args, job, pairs, inner, range.end, seen)) continue;
    const PlainBand k_or_q = by_queries ? band_of(args.k, offsets.k, inner, inner_rows)
                                        : band_of(args.q, offsets.q, inner, inner_rows);
    const PlainBand v_or_do = by_queries ? band_of(args.v, offsets.v, inner, inner_rows)
                                         : band_of(args.d_o, offsets.d_o, inner, inner_rows);
    Real scores[kRowsOfWarp];
    Real products[kRowsOfWarp] = {};
    const bool of_values = job.of == PlainBackward::Value;
    multiply_rows(tiles, q_or_k, k_or_q, args.head_dim, scores);
    if (!of_values) multiply_rows(tiles, do_or_v, v_or_do, args.value_dim, products);
    weigh_pairs(args, job, offsets, inner, products, scores, seen);
    const PlainBand values = of_values    ? band_of(args.d_o, offsets.d_o, inner, inner_rows)
                             : by_queries ? band_of(args.k, offsets.k, inner, inner_rows)
                                          : band_of(args.q, offsets.q, inner, inner_rows);
    add_weighted(tiles, values, job.column, of_values ? args.value_dim : args.head_dim, scores,
                 seen, sums);
  }
}

template <class Real>
HP_DEVICE void store_sums(const PlainSums& to, std::int64_t offset, const PlainJob& job,
                          std::int64_t rows, std::int64_t columns,
                          const Real (&sums)[kRowsOfWarp][kColumnsOfLane]) {
  auto* const data = static_cast<Real*>(moved(to.data, offset));
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const std::int64_t row = job.first + warp_row() + i;
#pragma unroll
    for (int j = 0; j < kColumnsOfLane; ++j) {
      const std::int64_t column = job.column + lane_index() + 32 * j;
      if (row >= rows || column >= columns) continue;
      Real* const at = data + row * to.row_stride + column;
      *at = to.carry ? *at + sums[i][j] : sums[i][j];
    }
  }
}

template <class Real>
HP_DEVICE void make_backward(const PlainBackwardArgs& args, const PlainJob& job,
                             PlainTiles<Real>& tiles) {
  const bool by_queries = job.of == PlainBackward::Query;
  const int loops = by_queries ? args.nest.count : args.nest.kept;
  const std::int64_t turns = by_queries ? 1 : args.sums;
  Real sums[kRowsOfWarp][kColumnsOfLane] = {};
#pragma unroll 1
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    add_turn(args, job, offsets_of(args, loops, job.turn, turn), tiles, sums);
  }
  const PlainOffsets to = offsets_of(args, loops, job.turn, 0);
  if (by_queries) {
    store_sums(args.dq, to.dq, job, args.queries, args.head_dim, sums);
  } else if (job.of == PlainBackward::Key) {
    store_sums(args.dk, to.dk, job, args.keys, args.head_dim, sums);
  } else {
    store_sums(args.dv, to.dv, job, args.keys, args.value_dim, sums);
  }
}

// The grid may have any number of thread blocks.
template <class Real>
HP_DEVICE void plain_backward(const PlainBackwardArgs& args) {
  __shared__ PlainTiles<Real> tiles;
  const std::int64_t blocks = args.dq_blocks + args.dk_blocks + args.dv_blocks;
#pragma unroll 1
  for (std::int64_t at = blockIdx.x; at < blocks; at += gridDim.x) {
    make_backward<Real>(args, job_of(args, at), tiles);
  }
}

}  // namespace harpe::device
