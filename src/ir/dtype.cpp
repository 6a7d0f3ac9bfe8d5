#include "ir/dtype.h"

#include <algorithm>
#include <array>

#include "support/check.h"

namespace harpe {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
  double unit_roundoff;  // 2^-(p), p = significand bits including the hidden one; 0: not floating
  double smallest_normal;
};

constexpr std::array kDTypes = {
    DTypeInfo{DType::F32, "f32", 4, 0x1p-24, 0x1p-126},
    DTypeInfo{DType::F16, "f16", 2, 0x1p-11, 0x1p-14},
    DTypeInfo{DType::BF16, "bf16", 2, 0x1p-8, 0x1p-126},
    DTypeInfo{DType::F64, "f64", 8, 0x1p-53, 0x1p-1022},
    DTypeInfo{DType::F8E4M3, "f8e4m3", 1, 0x1p-4, 0x1p-6},
    DTypeInfo{DType::F8E5M2, "f8e5m2", 1, 0x1p-3, 0x1p-14},
    DTypeInfo{DType::I8, "i8", 1, 0, 0},
    DTypeInfo{DType::U8, "u8", 1, 0, 0},
    DTypeInfo{DType::I32, "i32", 4, 0, 0},
    DTypeInfo{DType::I64, "i64", 8, 0, 0},
    DTypeInfo{DType::Bool, "bool", 1, 0, 0},
};

const DTypeInfo& info_of(DType dtype) {
  const auto found = std::ranges::find(kDTypes, dtype, &DTypeInfo::dtype);
  HP_CHECK(found != kDTypes.end(), "dtype " + std::to_string(static_cast<int>(dtype)));
  return *found;
}

}  // namespace

std::int64_t size_in_bytes(DType dtype) { return info_of(dtype).bytes; }

std::string_view print(DType dtype) { return info_of(dtype).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  const auto found = std::ranges::find(kDTypes, text, &DTypeInfo::name);
  if (found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

bool is_floating(DType dtype) { return unit_roundoff(dtype) > 0; }

bool is_computed_in(DType dtype) { return is_floating(dtype) && size_in_bytes(dtype) > 1; }

double unit_roundoff(DType dtype) { return info_of(dtype).unit_roundoff; }

double smallest_normal(DType dtype) { return info_of(dtype).smallest_normal; }

DType state_dtype(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

}  // namespace harpe
