#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace harpe {

// A whole (global) tensor in host memory: dense, row-major.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

using TensorMap = std::map<std::string, HostTensor>;  // by buffer name

[[nodiscard]] std::int64_t element_count(const HostTensor& tensor);
[[nodiscard]] HostTensor make_tensor(DType dtype, std::vector<std::int64_t> shape);  // zeros

// One element as f64; store rounds once to nearest even.
[[nodiscard]] double load(const HostTensor& tensor, std::int64_t index);
void store(HostTensor& tensor, std::int64_t index, double value);
// The largest finite |x|; 0 if there is none.
[[nodiscard]] double largest_magnitude(const HostTensor& tensor);

// The same values in another type, each rounded once to nearest even (NaN and infinities kept).
[[nodiscard]] HostTensor convert(const HostTensor& tensor, DType dtype);

// bf16 and f16 bit patterns, to nearest even.
[[nodiscard]] float bf16_to_f32(std::uint16_t bits);
[[nodiscard]] std::uint16_t f32_to_bf16(float value);
[[nodiscard]] float f16_to_f32(std::uint16_t bits);
[[nodiscard]] std::uint16_t f32_to_f16(float value);

// Reproducible inputs: element i of buffer `name` depends only on `seed`, `name` and i. Uniform in
// [-1, 1), rounded to dtype.
[[nodiscard]] HostTensor random_tensor(DType dtype, std::vector<std::int64_t> shape,
                                       std::uint64_t seed, const std::string& name);

}  // namespace harpe
