#pragma once

#include <string>
#include <vector>

#include "harpe/run.h"
#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe::library {

// Conversions between callers' views and the library's whole tensors. Errors name the view
// `argument`.

// Checks that a view has the tensor's shape and a type that converts to the buffer's. Errors: I311.
[[nodiscard]] harpe::Checked<Ok> check_view(const Buffer& buffer,
                                            const std::vector<std::int64_t>& shape,
                                            const v1::ConstView& view, const std::string& argument);
// Copies the elements unchanged. Requires: check_view.
[[nodiscard]] HostTensor copy_view(const v1::ConstView& view);

// The elements of an input, rounded to the buffer's type. Errors: I311 the view does not match the
// tensor; I304 an index that does not fit the buffer's type.
[[nodiscard]] harpe::Checked<HostTensor> read_view(const Program& program, const Buffer& buffer,
                                                   const v1::ConstView& view,
                                                   const std::string& argument);

// Checks that an output may be written to the view. Errors: I311.
[[nodiscard]] harpe::Checked<Ok> check_output(const Program& program, const Buffer& buffer,
                                              const v1::View& view, const std::string& argument);
// Writes a tensor, rounding once if the types differ. Requires: check_output.
void write_view(const HostTensor& tensor, const v1::View& view);

// Whether every element has memory of its own. True only if each stride is larger than the extent
// that all smaller strides reach.
[[nodiscard]] bool is_injective(const v1::View& view);
[[nodiscard]] std::string print_strides(const v1::View& view);

[[nodiscard]] v1::Tensor to_tensor(HostTensor tensor);

}  // namespace harpe::library
