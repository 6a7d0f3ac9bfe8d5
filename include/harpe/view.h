#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "harpe/api.h"
#include "harpe/plan.h"

namespace harpe {
HARPE_INLINE namespace v1 {
constexpr std::size_t kMostAxes = 8;

// A tensor in the caller's memory, which must outlive the call. A view allocates and frees nothing.
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

// Views of dense elements with a contiguous last axis. Throws std::length_error above kMostAxes.
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

// A tensor that owns its memory: dense, with a contiguous last axis.
struct Tensor {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  [[nodiscard]] View view() { return dense(data.data(), dtype, shape); }
  [[nodiscard]] ConstView view() const { return dense(data.data(), dtype, shape); }
};

}  // namespace v1
}  // namespace harpe
