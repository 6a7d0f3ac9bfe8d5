#include "extension/array.h"

#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace harpe::python {
namespace {

constexpr const char* kTypes = "of f16, bf16, f32, f64, i32 or i64";

[[noreturn]] void refuse_array(std::string_view name, const std::string& wanted,
                               const std::string& found) {
  nb::dict fields;
  fields["argument"] = nb::str(name.data(), name.size());
  fields["wanted"] = wanted;
  fields["found"] = found;
  refuse("I311", fields);
}

std::string print_type(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__")));
}

// Types in the buffer protocol and the CUDA array interface; both have bf16 as V2.
std::optional<DType> parse_letter(char letter, std::int64_t bytes) {
  switch (letter) {
    case 'e':
    case 'f':
    case 'd':
      if (bytes == 2) return DType::F16;
      if (bytes == 4) return DType::F32;
      if (bytes == 8) return DType::F64;
      return std::nullopt;
    case 'i':
    case 'l':
    case 'q':
      if (bytes == 4) return DType::I32;
      if (bytes == 8) return DType::I64;
      return std::nullopt;
    case '?':
      return DType::Bool;
    case 'V':
      return bytes == 2 ? std::optional(DType::BF16) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// "f", "<f": only this machine's byte order.
std::optional<DType> parse_format(std::string_view format, std::int64_t bytes) {
  if (format.starts_with('@') || format.starts_with('=') || format.starts_with('<')) {
    format.remove_prefix(1);
  }
  return format.size() == 1 ? parse_letter(format.front(), bytes) : std::nullopt;
}

// Strides are in bytes. Accepts any number of axes; the library refuses too many.
template <class Size>
void set_axes(View& view, std::int64_t axes, const Size* shape, const Size* strides,
              std::string_view name) {
  const std::int64_t size = size_in_bytes(view.dtype);
  view.axes = static_cast<std::size_t>(axes);
  for (std::size_t axis = 0; axis < std::min(view.axes, kMostAxes); ++axis) {
    view.shape[axis] = shape[axis];
    view.strides[axis] = strides[axis] / size;
    if (strides[axis] % size == 0) continue;
    refuse_array(name, "of strides that are whole elements",
                 "of a stride of " + std::to_string(strides[axis]) + " bytes");
  }
}

// NumPy exports no buffer of a bf16 array, but one of its bits.
bool is_bf16_of_numpy(nb::handle object) {
  if (!nb::hasattr(object.type(), "__array_interface__")) return false;
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const nb::object type = nb::getattr(dtype, "type", nb::none());
  return type.is_type() && nb::cast<std::string_view>(type.attr("__name__")) == "bfloat16";
}

}  // namespace

void refuse(const char* code, const nb::dict& fields) {
  const nb::object refused =
      nb::module_::import_("harpe._errors").attr("make_refusal")(code, **fields);
  PyErr_SetObject(refused.type().ptr(), refused.ptr());
  throw nb::python_error();
}

std::optional<DType> find_dtype(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::Bool); ++i) {
    if (print(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> find_dtype(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(dtype.code);
  if (dtype.lanes != 1) return std::nullopt;
  if (code == Code::Bfloat) return parse_letter('V', dtype.bits / 8);
  if (code == Code::Float) return parse_letter('f', dtype.bits / 8);
  if (code == Code::Int) return parse_letter('i', dtype.bits / 8);
  if (code == Code::Bool) return parse_letter('?', dtype.bits / 8);
  return std::nullopt;
}

Array::~Array() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

void Array::take(nb::handle object, std::string_view name, Access access) {
  if (nb::isinstance<nb::tuple>(object)) {
    take_address(nb::borrow<nb::tuple>(object), name);
  } else if (!access.is_on_gpu && open_buffer(object)) {
    const std::string_view format = buffer_.format == nullptr ? "B" : buffer_.format;
    const std::optional<DType> dtype = parse_format(format, buffer_.itemsize);
    if (!dtype) refuse_array(name, kTypes, "of format `" + std::string(format) + "`");
    take_buffer(*dtype, name, access);
  } else if (!access.is_on_gpu && is_bf16_of_numpy(object) &&
             open_buffer(parent_ = object.attr("view")("H"))) {
    take_buffer(DType::BF16, name, access);
  } else if (nb::hasattr(object, "__dlpack__")) {
    take_tensor(object, name, access);
  } else if (nb::hasattr(object, "__cuda_array_interface__")) {
    take_cuda_array(object, name, access);
  } else {
    refuse_array(name, "an array", "of type " + print_type(object));
  }
}

// False if the object exports no buffer.
bool Array::open_buffer(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) == 0) return true;
  PyErr_Clear();
  buffer_.obj = nullptr;
  return false;
}

void Array::take_buffer(DType dtype, std::string_view name, Access access) {
  if (access.is_written && buffer_.readonly != 0) {
    refuse_array(name, "memory that may be written to", "read-only");
  }
  view_.data = buffer_.buf;
  view_.dtype = dtype;
  set_axes(view_, buffer_.ndim, buffer_.shape, buffer_.strides, name);
}

void Array::take_address(const nb::tuple& parts, std::string_view name) {
  nb::tuple shape, strides;
  nb::str type;
  std::uintptr_t address = 0;
  const bool is_one = parts.size() == 4 && nb::try_cast(parts[0], address, false) &&
                      nb::try_cast(parts[1], type, false) && nb::try_cast(parts[2], shape, false) &&
                      nb::try_cast(parts[3], strides, false) && shape.size() == strides.size();
  if (!is_one) refuse_array(name, "(address, type, shape, strides)", "another tuple");
  const std::optional<DType> dtype = find_dtype(type.c_str());
  if (!dtype) refuse_array(name, kTypes, "of type `" + std::string(type.c_str()) + "`");
  view_.data = reinterpret_cast<void*>(address);
  view_.dtype = *dtype;
  view_.axes = shape.size();
  for (std::size_t axis = 0; axis < std::min(view_.axes, kMostAxes); ++axis) {
    view_.shape[axis] = nb::cast<std::int64_t>(shape[axis]);
    view_.strides[axis] = nb::cast<std::int64_t>(strides[axis]);
  }
}

void Array::take_tensor(nb::handle object, std::string_view name, Access access) {
  const auto [device, id] = nb::cast<std::pair<int, int>>(object.attr("__dlpack_device__")());
  if (device != (access.is_on_gpu ? nb::device::cuda::value : nb::device::cpu::value)) {
    refuse_array(name, access.is_on_gpu ? "in the memory of a GPU" : "in the host's memory",
                 "on DLPack's device " + std::to_string(device) + ":" + std::to_string(id));
  }
  // On GPUs the producer must not synchronise a stream: the launch is ordered in the caller's.
  const nb::object given =
      access.is_on_gpu ? object.attr("__dlpack__")(nb::arg("stream") = -1) : nb::borrow(object);
  nb::ndarray<> writable;
  const bool is_taken = access.is_written ? nb::try_cast(given, writable, false)
                                          : nb::try_cast(given, tensor_, false);
  if (!is_taken) {
    refuse_array(name, access.is_written ? "writable by DLPack" : "readable by DLPack",
                 "a " + print_type(object) + " that is not");
  }
  if (access.is_written) tensor_ = nb::ndarray<nb::ro>(writable);
  const std::optional<DType> dtype = find_dtype(tensor_.dtype());
  if (!dtype) refuse_array(name, kTypes, "of another type");
  view_.data = const_cast<void*>(tensor_.data());
  view_.dtype = *dtype;
  view_.axes = tensor_.ndim();
  const std::size_t axes = std::min(view_.axes, kMostAxes);
  std::copy_n(tensor_.shape_ptr(), axes, view_.shape.begin());
  std::copy_n(tensor_.stride_ptr(), axes, view_.strides.begin());
}

void Array::take_cuda_array(nb::handle object, std::string_view name, Access access) {
  if (!access.is_on_gpu) refuse_array(name, "in the host's memory", "in that of a device");
  const nb::object given = object.attr("__cuda_array_interface__");
  const auto [address, is_read_only] = nb::cast<std::pair<std::uintptr_t, bool>>(given["data"]);
  const auto type = nb::cast<std::string>(given["typestr"]);  // "<f4"
  const std::int64_t bytes = type.size() > 2 ? std::atoll(type.c_str() + 2) : 0;
  const std::optional<DType> dtype = parse_format(type.substr(0, 2), bytes);
  if (!dtype) refuse_array(name, kTypes, "of type `" + type + "`");
  if (access.is_written && is_read_only) {
    refuse_array(name, "memory that may be written to", "read-only");
  }
  const auto shape = nb::cast<std::vector<std::int64_t>>(given["shape"]);
  View view = dense(reinterpret_cast<void*>(address), *dtype, shape);
  const nb::object strides = nb::getattr(given, "get")("strides");
  if (!strides.is_none()) {
    const auto steps = nb::cast<std::vector<std::int64_t>>(strides);
    set_axes(view, std::ssize(shape), shape.data(), steps.data(), name);
  }
  view_ = view;
}

}  // namespace harpe::python
