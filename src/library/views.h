#pragma once

#include <string>
#include <vector>

#include "harpe/run.h"
#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe::library {

// Between views of a caller's and whole tensors of ours. `argument`: what errors call the view.

// Is it a view of such a tensor, of a type that may be given for the buffer's? Errors: I311.
[[nodiscard]] harpe::Checked<Ok> check_view(const Buffer& buffer,
                                            const std::vector<std::int64_t>& shape,
                                            const v1::ConstView& view, const std::string& argument);
// Its elements, as they are. Requires: it is one.
[[nodiscard]] HostTensor copy_view(const v1::ConstView& view);

// The elements of an input, rounded to the buffer's type. Errors: I311 it is no view of such a
// tensor; I304 an index that the buffer's type does not hold.
[[nodiscard]] harpe::Checked<HostTensor> read_view(const Program& program, const Buffer& buffer,
                                                   const v1::ConstView& view,
                                                   const std::string& argument);

// May an output be written there? Errors: I311.
[[nodiscard]] harpe::Checked<Ok> check_output(const Program& program, const Buffer& buffer,
                                              const v1::View& view, const std::string& argument);
// Rounds once where types differ. Requires: check_output.
void write_view(const HostTensor& tensor, const v1::View& view);

// Is every element in memory of its own? True where each stride steps over all that the smaller
// ones reach.
[[nodiscard]] bool is_injective(const v1::View& view);
[[nodiscard]] std::string print_strides(const v1::View& view);

[[nodiscard]] v1::Tensor to_tensor(HostTensor tensor);

}  // namespace harpe::library
