#pragma once

#include <cstdint>
#include <string_view>

#include "exec/actions/problems.h"

namespace harpe {

// c = (accumulate ? c : 0) + a * b. f16 and bf16 operands are summed in f32; bf16 operands below
// 2^-126 may count as 0. Requires: a and b of equal dtype among f16, bf16, f32, f64; c overlaps
// neither. Keeps: single-threaded, re-entrant, and bitwise the same for equal shape, strides and
// values.
void multiply(const GemmProblem& problem);

// What computes GEMMs of this type on this machine: "oneDNN", "OpenBLAS" or "own loops", and the
// type of operands it uses: as given ("bf16") or widened first ("f32").
struct GemmBackend {
  std::string_view library;
  DType operands = DType::F32;
};
[[nodiscard]] GemmBackend gemm_backend(DType dtype, Products products = Products::Libraries);

}  // namespace harpe
