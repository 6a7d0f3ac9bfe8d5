#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "harpe/api.h"
#include "harpe/error.h"
#include "harpe/plan.h"

namespace harpe {
HARPE_INLINE namespace v1 {
constexpr std::size_t kMostAxes = 8;

// A whole tensor in memory of the caller's, which outlives the call. Makes and frees nothing.
template <class Memory>
struct BasicView {
  Memory* data = nullptr;  // of the first element; needs no alignment
  DType dtype = DType::F32;
  std::size_t axes = 0;
  std::array<std::int64_t, kMostAxes> shape{};
  std::array<std::int64_t, kMostAxes> strides{};  // in elements; may be 0 or negative

  operator BasicView<const void>() const
    requires(!std::is_const_v<Memory>)
  {
    return {.data = data, .dtype = dtype, .axes = axes, .shape = shape, .strides = strides};
  }
};
using View = BasicView<void>;
using ConstView = BasicView<const void>;

// Views of dense elements, the last axis contiguous. Throws std::length_error above kMostAxes.
template <class Shape = std::initializer_list<std::int64_t>>
[[nodiscard]] ConstView dense(const void* data, DType dtype, const Shape& shape) {
  if (shape.size() > kMostAxes) throw std::length_error("a view of more than kMostAxes axes");
  ConstView view{.data = data, .dtype = dtype, .axes = shape.size(), .shape = {}, .strides = {}};
  std::size_t axis = 0;
  for (const std::int64_t extent : shape) view.shape[axis++] = extent;
  for (std::int64_t stride = 1; axis-- > 0; stride *= view.shape[axis]) view.strides[axis] = stride;
  return view;
}
template <class Shape = std::initializer_list<std::int64_t>>
[[nodiscard]] View dense(void* data, DType dtype, const Shape& shape) {
  const ConstView view = dense(static_cast<const void*>(data), dtype, shape);
  return {.data = data,
          .dtype = dtype,
          .axes = view.axes,
          .shape = view.shape,
          .strides = view.strides};
}

// A whole tensor that owns its memory: dense, the last axis contiguous.
struct Tensor {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  [[nodiscard]] View view() { return dense(data.data(), dtype, shape); }
  [[nodiscard]] ConstView view() const { return dense(data.data(), dtype, shape); }
};

// Reproducible inputs of a plan, of its buffers' types: those that `harpe run --seed` draws.
// Errors: I502 too little memory.
[[nodiscard]] HARPE_API Checked<std::map<std::string, Tensor>> draw_inputs(const Plan& plan,
                                                                           std::uint64_t seed = 0);

struct RunOptions {
  // Compare outputs with the program's reference; one that is off by more than rounding explains
  // is the error I401. Takes as long as a slow sequential execution in f64; above 2e11
  // floating-point operations, sampled rows.
  bool check = false;
  std::int64_t iterations = 1;                   // executions, back to back
  std::chrono::milliseconds wait_limit{10'000};  // of any wait of one rank for another
};

// An output against the reference.
struct Comparison {
  std::string buffer;
  double error = 0;  // the largest difference, relative to the scale of its row
  double bound = 0;  // what rounding may explain
  std::int64_t rows = 0;
  std::int64_t rows_checked = 0;
};

struct RunResult {
  std::map<std::string, Tensor> outputs;  // those that were given no view
  std::vector<double> times_us;           // wall time of each execution
  std::int64_t bytes_moved = 0;           // between ranks, by one execution
  // Copied between views and whole tensors of the library's: every input, converted or not, and
  // outputs that have a view.
  std::int64_t copied_bytes = 0;
  std::vector<Comparison> checks;
};

// Executes a plan on CPU ranks, threads of this process, and returns when they are done. A view
// is a whole tensor of its buffer's shape. Its type may differ from the buffer's, within
// floating-point types (f32, f64, f16, bf16) and within i32 and i64: elements are rounded once.
// Outputs with a view are written there; two indices of it may not name the same memory.
// Calls on several threads each have ranks of their own. Errors: I301, I305 no such buffer; I310 an
// input is missing; I311 an argument, with what it must be and what it is; I304 an index out of
// range; P22x what masks read; I401 a check failed; I502 memory; of kind Fault who waited for whom.
[[nodiscard]] HARPE_API Checked<RunResult> run(const Plan& plan,
                                               const std::map<std::string, ConstView>& inputs,
                                               const std::map<std::string, View>& outputs = {},
                                               const RunOptions& options = {});

}  // namespace v1
}  // namespace harpe
