#pragma once

#include <nanobind/ndarray.h>

#include <optional>
#include <string_view>

#include "extension/records.h"

namespace harpe::python {

// How a call uses an array.
struct Access {
  bool is_written = false;
  bool is_on_gpu = false;  // otherwise the host reads it
};

// Raises harpe.Refused with that code; `fields` fill in its message.
[[noreturn]] void refuse(const char* code, const nb::dict& fields);

// Parses "bf16"; none for an unknown type.
[[nodiscard]] std::optional<DType> find_dtype(std::string_view name);
[[nodiscard]] std::optional<DType> find_dtype(nb::dlpack::dtype dtype);

// A Python array as a view without copies; keeps its memory alive. Accepts the buffer protocol,
// DLPack (torch) and, on GPUs, the CUDA array interface; bf16 as the type of ml_dtypes or torch. A
// tuple (address, type, shape, strides in elements) is used unchecked. Requires the interpreter's
// lock.
class Array {
 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();

  // Called once. `name`: the array's name in errors. Raises harpe.Refused, I311.
  void take(nb::handle object, std::string_view name, Access access);
  [[nodiscard]] const View& view() const { return view_; }

 private:
  [[nodiscard]] bool open_buffer(nb::handle object);
  void take_buffer(DType dtype, std::string_view name, Access access);
  void take_tensor(nb::handle object, std::string_view name, Access access);
  void take_address(const nb::tuple& parts, std::string_view name);
  void take_cuda_array(nb::handle object, std::string_view name, Access access);

  View view_;
  Py_buffer buffer_{};  // empty if no object lent a buffer
  nb::ndarray<nb::ro> tensor_;
  nb::object parent_;  // of a view made for this call
};

}  // namespace harpe::python
