#pragma once

#include "exec/cuda/device/types.h"

// Arguments of the harness' own kernels, which share only the names of element types with the
// kernels under test.
namespace harpe::bench {

using device::Element;

// Rows of elements; `stride` elements from row to row.
struct Rows {
  void* address;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;
  Element element;
};

enum class Distribution : std::uint8_t { Normal, Uniform };  // variance 1; [-1, 1)

struct FillArgs {
  Rows to;
  std::uint64_t seed;
  Distribution distribution;
  float shift;  // added to each value
};

struct SpinArgs {
  std::uint64_t nanoseconds;
};

// Row `i` of a reference is row (first + i * step) % all of the whole.
struct RowSample {
  std::int64_t first;
  std::int64_t step;
  std::int64_t all;
  std::int64_t count;
};

struct GemmReferenceArgs {
  Rows a;              // sample.all x k, or k x sample.all where `a_m_major`
  Rows b;              // k x n, or n x k where `b_k_major`
  const float* start;  // what C held before, if it is added to; else null. Rows of n
  Rows row;            // added to every row of C, where `adds_row`
  bool adds_row;
  bool takes_gelu;  // of C, after the row was added
  double* value;    // sample.count x n
  double* bound;
  RowSample sample;
  std::int64_t n;
  std::int64_t k;
  bool a_m_major;
  bool b_k_major;
  Element out;
  double roundings;  // consecutive f32 additions in one element
};

struct AttentionReferenceArgs {
  const void* q;
  const void* k;
  const void* v;
  const float* start_o;    // carried state: [batch, rows, heads, v_columns], normalised; or null
  const float* start_lse;  // [batch, heads, rows]
  double* value;           // [batch, sample.count, heads, v_columns]
  double* bound;
  double* lse;  // [batch, heads, sample.count]
  double* lse_bound;
  RowSample sample;
  std::int64_t keys;
  std::int32_t batch;
  std::int32_t heads;
  std::int32_t kv_heads;
  std::int32_t columns;  // of q and k
  std::int32_t v_columns;
  std::int64_t q_strides[3];  // elements from batch to batch, row to row, head to head
  std::int64_t k_strides[3];
  std::int64_t v_strides[3];
  std::int64_t first_position;  // of q's row 0; key 0 is at position 0
  std::int64_t window;          // most keys that a row sees, including its own; 0: all
  bool causal;
  double scale;
  Element in;
  Element out;
};

// The result of a comparison. A NaN has an infinite error.
struct Verdict {
  std::uint64_t worst;    // bits of the largest |out - value| / bound
  std::uint64_t wrong;    // elements beyond their bound
  std::uint64_t first;    // least index of a wrong element: row * columns + column
  std::uint64_t altered;  // changed bytes outside the output
  std::uint64_t compared;
};

struct CompareArgs {
  Rows out;
  RowSample sample;
  const double* value;
  const double* bound;
  Verdict* verdict;
};

// Everything in [begin, begin + bytes) must hold `pattern`, except rows of `row_bytes` from
// `offset` on.
struct GuardArgs {
  const std::uint8_t* begin;
  std::int64_t bytes;
  std::int64_t offset;
  std::int64_t rows;
  std::int64_t row_bytes;
  std::int64_t stride_bytes;
  std::uint8_t pattern;
  Verdict* verdict;
};

}  // namespace harpe::bench
