#pragma once

#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// Reads a whole tensor in NumPy's `.npy` format (versions 1.0, 2.0 and 3.0), C order,
// little-endian: f32, f64, f16, i32, i64. Nothing is allocated before the header is found to agree
// with the file.
// Errors: I101, I201 to I209.
[[nodiscard]] Checked<HostTensor> read_npy(const std::string& path);

// Writes `tensor` as f32, each element rounded once. The file appears whole or not at all. Errors:
// I102.
[[nodiscard]] Checked<Ok> write_npy(const std::string& path, const HostTensor& tensor);

// Converts a file's tensor to the input `buffer` of `program`: checks shape and kind, and rounds to
// its dtype.
// Requires: program is ground. Errors: I302, I303, I304.
[[nodiscard]] Checked<HostTensor> fit_input(const Program& program, const Buffer& buffer,
                                            const HostTensor& tensor, const std::string& path);

// "[4, 128]", "[]"
[[nodiscard]] std::string print_shape(const std::vector<std::int64_t>& shape);

}  // namespace harpe
