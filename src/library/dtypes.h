#pragma once

#include "harpe/plan.h"
#include "ir/dtype.h"

namespace harpe::library {

// The public types have the values of the internal ones.
static_assert(static_cast<int>(v1::DType::F32) == static_cast<int>(DType::F32));
static_assert(static_cast<int>(v1::DType::F16) == static_cast<int>(DType::F16));
static_assert(static_cast<int>(v1::DType::BF16) == static_cast<int>(DType::BF16));
static_assert(static_cast<int>(v1::DType::F64) == static_cast<int>(DType::F64));
static_assert(static_cast<int>(v1::DType::F8E4M3) == static_cast<int>(DType::F8E4M3));
static_assert(static_cast<int>(v1::DType::F8E5M2) == static_cast<int>(DType::F8E5M2));
static_assert(static_cast<int>(v1::DType::I8) == static_cast<int>(DType::I8));
static_assert(static_cast<int>(v1::DType::U8) == static_cast<int>(DType::U8));
static_assert(static_cast<int>(v1::DType::I32) == static_cast<int>(DType::I32));
static_assert(static_cast<int>(v1::DType::I64) == static_cast<int>(DType::I64));
static_assert(static_cast<int>(v1::DType::Bool) == static_cast<int>(DType::Bool));

[[nodiscard]] inline v1::DType public_dtype(DType dtype) { return static_cast<v1::DType>(dtype); }
[[nodiscard]] inline DType internal_dtype(v1::DType dtype) { return static_cast<DType>(dtype); }

}  // namespace harpe::library
