#pragma once

#include "exec/cuda/device/loop_nest.h"
#include "exec/cuda/device/used_rows.h"

// The arguments of plain kernels, for host and device. Plain kernels take any strides, loops around
// them and floating types; they run what the tensor-core kernels do not support.
namespace harpe::device {

inline constexpr int kStridedThreads = 256;

// The operands of one of several moves or maps that are otherwise alike and share a launch. The
// grid has one row of thread blocks for each.
struct StridedPlace {
  void* to;
  const void* a;
  const void* b;
  UsedRows used;
};

// Copies words bitwise; the last loop goes along a row. Operands: to, from.
struct MoveArgs {
  void* to;
  const void* from;  // null: fills with the first word_bytes of `pattern`
  LoopNest<2> nest;
  UsedRows used;
  std::int64_t words;          // of all iterations
  std::int32_t word_bytes;     // 16, 8, 4, 2 or 1; divides every address and step
  const StridedPlace* places;  // null: one place, described here
  alignas(16) std::uint32_t pattern[4];

  friend HP_SHARED_CODE bool operator==(const MoveArgs&, const MoveArgs&) = default;
};

enum class MapFunction : std::uint8_t {
  Convert,
  Accumulate,  // to += a
  Silu,
  Relu,
  Gelu,
  Add,
  Mul,
  SiluMul,
  RmsScale  // a / sqrt(b / features + epsilon)
};

// to = function(a, b), element by element, rounded once; the last loop goes along a row. Operands:
// to, a, b.
struct MapArgs {
  void* to;
  const void* a;
  const void* b;  // null: the function takes one operand
  Number to_number;
  Number a_number;
  Number b_number;
  MapFunction function;
  // An iteration of the last loop is map_width() elements. They are contiguous in `to` and in dense
  // operands; another operand has one element for all of them. All are aligned as one vector.
  bool vectors;
  bool a_dense;
  bool b_dense;
  LoopNest<3> nest;
  UsedRows used;
  std::int64_t turns;
  double features;
  double epsilon;
  const StridedPlace* places;  // null: one place, described here

  friend HP_SHARED_CODE bool operator==(const MapArgs&, const MapArgs&) = default;
};

// Elements that a thread processes at a time.
HP_SHARED_CODE int map_width(bool wide) { return wide ? 2 : 4; }

inline constexpr int kFoldSources = 8;  // the most sources of one launch

// A source of a fold. It is rounded to `wire` first; `wire` is its own type if it is not rounded.
struct FoldOperand {
  const void* data;
  Number number;
  Number wire;
};

// to = the sum of `count` operands in their order, element by element, rounded once; the last loop
// goes along a row. Operands: to, then the sources.
struct SumArgs {
  void* to;
  Number to_number;
  std::int32_t count;
  FoldOperand from[kFoldSources];
  bool vectors;  // an iteration of the last loop is map_width() elements, aligned as one vector
  LoopNest<1 + kFoldSources> nest;
  std::int64_t turns;
};

inline constexpr int kRowThreads = 256;  // one warp per row

// (o, l) = the combination of `count` states in their order, row by row, rounded once. Operands: o
// and l, then o and l of each state.
struct CombineArgs {
  static constexpr int kOperands = 2 + 2 * kFoldSources;

  void* o;
  void* l;
  Number o_number;
  Number l_number;
  std::int32_t count;
  FoldOperand from_o[kFoldSources];
  FoldOperand from_l[kFoldSources];
  std::int64_t rows;
  std::int64_t value_dim;
  std::int64_t row_bytes[kOperands];
  LoopNest<kOperands> nest;
  std::int64_t all_rows;  // of all iterations
};

// c[row] = sum over i of a[row, i] b[row, i]. Operands a, b, c; steps in bytes.
struct RowDotArgs {
  const void* a;
  const void* b;
  void* c;
  Number number;  // of a and b
  Number c_number;
  std::int64_t rows;
  std::int64_t length;
  std::int64_t a_bytes[2];  // from row to row, from element to element
  std::int64_t b_bytes[2];
  std::int64_t c_bytes;
  LoopNest<3> nest;
  std::int64_t all_rows;
};

inline constexpr int kNormThreads = 256;  // one thread block per row
inline constexpr int kNormRun = 8;        // neighbouring elements that a thread has at a time

// sum = x + residual, rounded, and y = sum / sqrt(mean of sum^2 + epsilon) * weight, by rows; steps
// in bytes. Operands x, residual, weight, sum, y.
struct AddRmsNormArgs {
  static constexpr int kOperands = 5;

  const void* x;
  const void* residual;
  const void* weight;
  void* sum;
  void* y;
  Number numbers[kOperands];
  std::int64_t row_bytes[kOperands];
  std::int64_t element_bytes[kOperands];
  bool dense;  // one type, contiguous rows of whole runs, all aligned to 16 bytes
  std::int64_t rows;
  std::int64_t length;
  double epsilon;
  LoopNest<kOperands> nest;
  std::int64_t all_rows;  // of all iterations
};

// A matrix; strides in elements.
struct PlainMatrix {
  const void* data;
  Number number;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

inline constexpr int kPlainTile = 64;  // rows and columns of C of a thread block
inline constexpr int kPlainGemmThreads = 256;

// c[m, n] = (accumulate ? c : 0) + a[m, k] b[k, n]; c is f32, or f64 for f64 operands. Operands a,
// b, c.
struct PlainGemmArgs {
  PlainMatrix a;
  PlainMatrix b;
  void* c;
  std::int64_t c_row_stride;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  bool accumulate;
  UsedRows used;  // of C
  LoopNest<3> nest;
  std::int64_t turns;  // iterations of the loops that are kept
  std::int64_t sums;   // iterations of the others
};

// As Visibility: query q sees key k iff k < prefix or low <= k - q <= high.
struct PlainMask {
  std::int64_t low;
  std::int64_t high;
  std::int64_t prefix;

  [[nodiscard]] HP_SHARED_CODE bool shows(std::int64_t query, std::int64_t key) const {
    return key < prefix || (low <= key - query && key - query <= high);
  }
};

// A table of a mask, by position: 32-bit integers; stride in entries.
struct PlainTable {
  const std::int32_t* data;  // null: no mask reads it
  std::int64_t stride;
};

// As MaskTables (exec/actions/problems.h): a query sees a key iff their documents are equal and the
// key exists.
struct PlainTables {
  PlainTable documents;
  PlainTable length;
  PlainTable pages;
  std::int64_t page_count;
  std::int64_t page;
  std::int64_t first_query;
  std::int64_t first_key;
  bool any;
};

inline constexpr int kPlainRows = 16;    // result rows of a thread block: four for each warp
inline constexpr int kPlainInner = 32;   // inner rows that they meet at a time: one for each lane
inline constexpr int kPlainSlice = 128;  // result columns at a time
inline constexpr int kPlainAttentionThreads = 128;

// softmax(scale q k^T) v, one head after the other, into the state (o, lse): f32, or f64 for f64
// operands. Operands q, k, v, o, lse, and the mask's tables.
struct PlainAttentionArgs {
  PlainMatrix q;
  PlainMatrix k;
  PlainMatrix v;
  void* o;
  void* lse;
  std::int64_t o_row_stride;
  std::int64_t lse_stride;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t head_dim;
  std::int64_t value_dim;
  double scale;
  PlainMask mask;
  PlainTables tables;
  bool carry;
  LoopNest<8> nest;
  std::int64_t turns;
};

// One number per query.
struct PlainValues {
  const void* data;
  Number number;
  std::int64_t stride;
};

struct PlainSums {
  void* data;
  std::int64_t row_stride;
  bool carry;  // the kernel adds to what is there
};

// Attention backward, one head after the other. Operands q, k, v, do, lse, delta, dq, dk, dv, and
// the mask's tables.
struct PlainBackwardArgs {
  PlainMatrix q;
  PlainMatrix k;
  PlainMatrix v;
  PlainMatrix d_o;
  PlainValues lse;
  PlainValues delta;
  PlainSums dq;
  PlainSums dk;
  PlainSums dv;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t head_dim;
  std::int64_t value_dim;
  double scale;
  PlainMask mask;
  PlainTables tables;
  LoopNest<12> nest;
  std::int64_t turns;      // iterations of the loops that are kept
  std::int64_t sums;       // iterations of the others, which share dk and dv
  std::int64_t dq_blocks;  // the first dq_blocks jobs compute dq, the next dk_blocks dk, then dv
  std::int64_t dk_blocks;
  std::int64_t dv_blocks;
};

}  // namespace harpe::device
