#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/dtype.h"
#include "ir/visibility.h"

// What leaves compute, as arguments for the kernels of every back end: addresses, element strides
// and types. Addresses are valid for the processor that computes.
namespace harpe {

// Which code computes GEMMs on CPU ranks. The two give different bits.
enum class Products : std::uint8_t {
  Libraries,  // oneDNN or OpenBLAS where one is found and fits, else our own loops
  OwnLoops,
};

// A matrix in memory, given by its element strides, one of which is 1.
struct MatrixView {
  const void* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

// c[m, n] = (accumulate ? c : 0) + a[m, k] * b[k, n]. c is row-major, f32 (f64 when a and b are
// f64).
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  MatrixView a;
  MatrixView b;
  void* c = nullptr;
  std::int64_t c_row_stride = 0;
  bool accumulate = false;
  Products products = Products::Libraries;
};

// 32-bit integers with a stride.
struct IndexTable {
  const void* data = nullptr;  // null: no mask reads it
  std::int64_t stride = 1;
  [[nodiscard]] bool exists() const { return data != nullptr; }
  [[nodiscard]] std::int64_t at(std::int64_t i) const {
    return static_cast<const std::int32_t*>(data)[i * stride];
  }
};

// Tables that masks on data (ir/program.h) read, for one batch entry.
struct MaskTables {
  IndexTable documents;  // by position, for queries and keys
  IndexTable length;     // one number
  IndexTable pages;
  std::int64_t page_count = 0;   // entries of `pages`, and pages of the storage
  std::int64_t page = 0;         // keys of a page
  std::int64_t first_query = 0;  // position of the first row of q
  std::int64_t first_key = 0;    // index of the first row of k
  [[nodiscard]] bool any() const { return documents.exists() || length.exists() || pages.exists(); }
};

// softmax(scale * q k^T) v of one head, into the state (o, lse): f32, or f64 for f64 operands.
// q[queries, head_dim], k[keys, head_dim], v[keys, value_dim], o[queries, value_dim], lse[queries].
struct AttentionProblem {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  MatrixView q;
  MatrixView k;
  MatrixView v;
  void* o = nullptr;
  std::int64_t o_row_stride = 0;
  void* lse = nullptr;
  std::int64_t lse_stride = 1;
  double scale = 1.0;
  bool carry = false;  // (o, lse) hold the state of other keys; combine with it
  Visibility visible;  // of rows of k to rows of q
  MaskTables tables = {};
  Products products = Products::Libraries;
};

// One number per row: f32 or f64.
struct RowValues {
  const void* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t stride = 1;
};

// A row-major matrix of sums: f32, or f64 for f64 operands.
struct SumMatrix {
  void* data = nullptr;
  std::int64_t row_stride = 0;
  bool carry = false;  // it holds other contributions; add to them
};

// Backward of one head of attention: with p = e^(scale q k^T - lse) and s = p (do v^T - delta), dq
// = scale s k, dk = scale s^T q, dv = p^T do. q[queries, head_dim], k[keys, head_dim], v[keys,
// value_dim], d_o[queries, value_dim], lse and delta [queries], dq, dk, dv like q, k, v.
struct AttentionBackwardProblem {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  MatrixView q;
  MatrixView k;
  MatrixView v;
  MatrixView d_o;
  RowValues lse;
  RowValues delta;
  SumMatrix dq;
  SumMatrix dk;
  SumMatrix dv;
  double scale = 1.0;
  Visibility visible;  // of rows of k to rows of q
  MaskTables tables = {};
  Products products = Products::Libraries;
};

// c[row] = sum over i of a[row, i] b[row, i], rounded once to c's type. Strides in elements.
struct RowDotProblem {
  struct Rows {
    const void* data = nullptr;
    std::int64_t row_stride = 0;
    std::int64_t stride = 1;
  };
  std::int64_t rows = 0;
  std::int64_t length = 0;
  DType dtype = DType::F32;  // of a and b
  Rows a;
  Rows b;
  void* c = nullptr;
  DType c_dtype = DType::F32;
  std::int64_t c_stride = 1;
};

enum class Pointwise : std::uint8_t { Silu, Relu, Gelu, Add, Mul, SiluMul, RmsScale };

// By the name of its leaf.
[[nodiscard]] std::optional<Pointwise> find_pointwise(std::string_view leaf);

// to[i] = function(a[i], b[i]), computed in f32 (f64 where an operand is) and rounded once.
struct PointwiseProblem {
  struct Operand {
    const void* data = nullptr;  // null: the function takes one operand
    DType dtype = DType::F32;
    std::int64_t stride = 1;  // elements; 0: one value for all
  };
  Pointwise function = Pointwise::Silu;
  std::int64_t length = 0;
  void* to = nullptr;
  DType to_dtype = DType::F32;
  std::int64_t to_stride = 1;
  Operand a;
  Operand b;
  // For RmsScale: a / sqrt(b / features + epsilon).
  double features = 1;
  double epsilon = 0;
};

// For every row: sum[i] = x[i] + residual[i], rounded to its type, and, from the rounded sum, y[i]
// = sum[i] / sqrt(mean of sum^2 + epsilon) * weight[i]. Computed in f32 (f64 if an operand is f64).
// Strides in elements.
struct AddRmsNormProblem {
  struct Rows {
    const void* data = nullptr;
    DType dtype = DType::F32;
    std::int64_t row_stride = 0;
    std::int64_t stride = 1;
  };
  struct Results {
    void* data = nullptr;
    DType dtype = DType::F32;
    std::int64_t row_stride = 0;
    std::int64_t stride = 1;
  };
  std::int64_t rows = 1;
  std::int64_t length = 0;
  Rows x;
  Rows residual;
  Rows weight;  // the same for all rows
  Results sum;
  Results y;
  double epsilon = 0;
};

}  // namespace harpe
