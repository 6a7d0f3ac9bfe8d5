#include "library/views.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "io/npy.h"
#include "library/dtypes.h"
#include "support/units.h"

namespace harpe::library {
namespace {

bool is_index(DType dtype) { return dtype == DType::I32 || dtype == DType::I64; }

// Whether a view's type converts to a buffer's type.
bool is_taken_for(DType given, DType wanted) {
  return is_computed_in(wanted) ? is_computed_in(given) : is_index(wanted) && is_index(given);
}

std::string print_wanted(const Buffer& buffer, const std::vector<std::int64_t>& shape) {
  const std::string types = is_computed_in(buffer.dtype) ? "f32, f64, f16 or bf16" : "i32 or i64";
  return types + " of shape " + print_shape(shape);
}

std::string print_found(const v1::ConstView& view) {
  if (view.axes > v1::kMostAxes) return "a view of " + std::to_string(view.axes) + " axes";
  const auto end = view.shape.begin() + static_cast<std::ptrdiff_t>(view.axes);
  return std::string(print(internal_dtype(view.dtype))) + " of shape " +
         print_shape({view.shape.begin(), end});
}

harpe::Checked<Ok> refuse(const std::string& argument, const std::string& wanted,
                          const std::string& found) {
  return make_diag(DiagCode::I311, {{"argument", argument}, {"wanted", wanted}, {"found", found}});
}

}  // namespace

harpe::Checked<Ok> check_view(const Buffer& buffer, const std::vector<std::int64_t>& shape,
                              const v1::ConstView& view, const std::string& argument) {
  const bool is_shape =
      view.axes == shape.size() && std::equal(shape.begin(), shape.end(), view.shape.begin());
  const auto is_known = view.dtype <= v1::DType::Bool;
  if (!is_known || !is_shape || !is_taken_for(internal_dtype(view.dtype), buffer.dtype)) {
    return refuse(argument, print_wanted(buffer, shape),
                  is_known ? print_found(view) : "of a type that is none");
  }
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  if (view.data == nullptr && !is_empty) {
    return refuse(argument, "the address of its first element", "null");
  }
  return Ok{};
}

namespace {

// Calls visit(offset into the view, index of the element), both in elements, in row-major order.
template <class Memory, class Visit>
void for_each_element(const v1::BasicView<Memory>& view, const Visit& visit) {
  std::array<std::int64_t, v1::kMostAxes> at{};
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < view.axes; ++axis) elements *= view.shape[axis];
  std::int64_t offset = 0;
  for (std::int64_t element = 0; element < elements; ++element) {
    visit(offset, element);
    for (std::size_t axis = view.axes; axis-- > 0;) {
      offset += view.strides[axis];
      if (++at[axis] < view.shape[axis]) break;
      offset -= view.strides[axis] * view.shape[axis];
      at[axis] = 0;
    }
  }
}

// Whether the view is row-major without gaps.
template <class Memory>
bool is_dense(const v1::BasicView<Memory>& view) {
  std::int64_t stride = 1;
  for (std::size_t axis = view.axes; axis-- > 0;) {
    if (view.shape[axis] != 1 && view.strides[axis] != stride) return false;
    stride *= view.shape[axis];
  }
  return true;
}

}  // namespace

HostTensor copy_view(const v1::ConstView& view) {
  const auto end = view.shape.begin() + static_cast<std::ptrdiff_t>(view.axes);
  HostTensor tensor = make_tensor(internal_dtype(view.dtype), {view.shape.begin(), end});
  const auto size = size_in_bytes(tensor.dtype);
  const auto* const from = static_cast<const std::byte*>(view.data);
  if (is_dense(view)) {
    if (!tensor.data.empty()) std::memcpy(tensor.data.data(), from, tensor.data.size());
  } else {
    for_each_element(view, [&](std::int64_t offset, std::int64_t element) {
      std::memcpy(tensor.data.data() + element * size, from + offset * size,
                  static_cast<std::size_t>(size));
    });
  }
  return tensor;
}

harpe::Checked<HostTensor> read_view(const Program& program, const Buffer& buffer,
                                     const v1::ConstView& view, const std::string& argument) {
  HP_REQUIRE_OK(check_view(buffer, shape_of(program, buffer), view, argument));
  HostTensor tensor = copy_view(view);
  if (tensor.dtype == buffer.dtype) return tensor;
  return fit_input(program, buffer, tensor, argument);
}

harpe::Checked<Ok> check_output(const Program& program, const Buffer& buffer, const v1::View& view,
                                const std::string& argument) {
  HP_REQUIRE_OK(check_view(buffer, shape_of(program, buffer), view, argument));
  if (is_injective(view)) return Ok{};
  return refuse(argument, "memory in which every element has a place of its own",
                print_strides(view));
}

void write_view(const HostTensor& tensor, const v1::View& view) {
  const DType dtype = internal_dtype(view.dtype);
  if (dtype != tensor.dtype) return write_view(convert(tensor, dtype), view);
  const auto size = size_in_bytes(dtype);
  auto* const to = static_cast<std::byte*>(view.data);
  if (is_dense(view)) {
    if (!tensor.data.empty()) std::memcpy(to, tensor.data.data(), tensor.data.size());
    return;
  }
  for_each_element(view, [&](std::int64_t offset, std::int64_t element) {
    std::memcpy(to + offset * size, tensor.data.data() + element * size,
                static_cast<std::size_t>(size));
  });
}

bool is_injective(const v1::View& view) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // size of the stride, extent
  for (std::size_t axis = 0; axis < view.axes; ++axis) {
    if (view.shape[axis] == 0) return true;
    if (view.shape[axis] > 1) axes.emplace_back(std::abs(view.strides[axis]), view.shape[axis]);
  }
  std::ranges::sort(axes);
  std::int64_t reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return false;
    reach = saturating_add(reach, saturating_multiply(stride, extent - 1));
  }
  return true;
}

std::string print_strides(const v1::View& view) {
  const auto end = view.strides.begin() + static_cast<std::ptrdiff_t>(view.axes);
  return "strides " + print_shape({view.strides.begin(), end});
}

v1::Tensor to_tensor(HostTensor tensor) {
  return {.dtype = public_dtype(tensor.dtype),
          .shape = std::move(tensor.shape),
          .data = std::move(tensor.data)};
}

}  // namespace harpe::library
