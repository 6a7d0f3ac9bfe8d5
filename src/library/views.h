#pragma once

#include <string>

#include "harpe/run.h"
#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe::library {

// Between views of a caller's and whole tensors of ours. `argument`: what errors call the view.

// The elements of an input, rounded to the buffer's type. Errors: I311 it is no view of such a
// tensor; I304 an index that the buffer's type does not hold.
[[nodiscard]] harpe::Checked<HostTensor> read_view(const Program& program, const Buffer& buffer,
                                                   const v1::ConstView& view,
                                                   const std::string& argument);

// May an output be written there? Errors: I311.
[[nodiscard]] harpe::Checked<Ok> check_output(const Program& program, const Buffer& buffer,
                                              const v1::View& view, const std::string& argument);
// Requires: check_output.
void write_view(const HostTensor& tensor, const v1::View& view);

[[nodiscard]] v1::Tensor to_tensor(HostTensor tensor);

}  // namespace harpe::library
