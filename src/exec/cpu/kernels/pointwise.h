#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/dtype.h"

namespace harpe {

enum class Pointwise : std::uint8_t { Silu, Relu, Gelu, Add, Mul, SiluMul, RmsScale };

[[nodiscard]] std::optional<Pointwise> find_pointwise(std::string_view leaf);

// to[i] = function(a[i], b[i]), computed in f32 (f64 where an operand is) and rounded once.
struct PointwiseProblem {
  struct Operand {
    const void* data = nullptr;  // null: the function takes one operand
    DType dtype = DType::F32;
    std::int64_t stride = 1;  // elements; 0: one value for all
  };
  Pointwise function = Pointwise::Silu;
  std::int64_t length = 0;
  void* to = nullptr;
  DType to_dtype = DType::F32;
  std::int64_t to_stride = 1;
  Operand a;
  Operand b;
  // Of RmsScale: a / sqrt(b / features + epsilon).
  double features = 1;
  double epsilon = 0;
};

// Requires: floating types.
void apply_pointwise(const PointwiseProblem& problem);

}  // namespace harpe
