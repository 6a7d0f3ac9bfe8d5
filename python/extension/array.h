#pragma once

#include <nanobind/ndarray.h>

#include <optional>
#include <string_view>

#include "extension/records.h"

namespace harpe::python {

// What a call may do with an array.
struct Access {
  bool is_written = false;
  bool is_on_gpu = false;  // else the host reads it
};

// Raises harpe.Refused of that code; `fields` fill in its message.
[[noreturn]] void refuse(const char* code, const nb::dict& fields);

// "bf16"; none: no such type.
[[nodiscard]] std::optional<DType> find_dtype(std::string_view name);
[[nodiscard]] std::optional<DType> find_dtype(nb::dlpack::dtype dtype);

// An array of Python's as a view, zero copies: its memory is held as long as this is. Whatever has
// the buffer protocol, DLPack (torch) or, on GPUs, the CUDA array interface; bf16 as the type of
// ml_dtypes or torch. A tuple (address, type, shape, strides in elements) says it at once, and is
// believed. Used with the interpreter's lock.
class Array {
 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();

  // Once. `name`: what errors call it. Raises harpe.Refused, I311.
  void take(nb::handle object, std::string_view name, Access access);
  [[nodiscard]] const View& view() const { return view_; }

 private:
  [[nodiscard]] bool open_buffer(nb::handle object);
  void take_buffer(DType dtype, std::string_view name, Access access);
  void take_tensor(nb::handle object, std::string_view name, Access access);
  void take_address(const nb::tuple& parts, std::string_view name);
  void take_cuda_array(nb::handle object, std::string_view name, Access access);

  View view_;
  Py_buffer buffer_{};  // of no object where there is none
  nb::ndarray<nb::ro> tensor_;
  nb::object parent_;  // of a view that was made for this
};

}  // namespace harpe::python
