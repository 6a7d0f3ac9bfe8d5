#include "ir/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace harpe {
namespace {

const std::vector<DType> kAll = {DType::F32,    DType::F16,    DType::BF16, DType::F64,
                                 DType::F8E4M3, DType::F8E5M2, DType::I8,   DType::U8,
                                 DType::I32,    DType::I64,    DType::Bool};

TEST(DType, every_name_reads_back) {
  for (const DType dtype : kAll) EXPECT_EQ(parse_dtype(print(dtype)), dtype) << print(dtype);
  EXPECT_EQ(parse_dtype("bf61"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, sizes_are_those_of_memory) {
  EXPECT_EQ(size_in_bytes(DType::F64), 8);
  EXPECT_EQ(size_in_bytes(DType::F32), 4);
  EXPECT_EQ(size_in_bytes(DType::BF16), 2);
  EXPECT_EQ(size_in_bytes(DType::F16), 2);
  EXPECT_EQ(size_in_bytes(DType::F8E4M3), 1);
  EXPECT_EQ(size_in_bytes(DType::I64), 8);
  EXPECT_EQ(size_in_bytes(DType::Bool), 1);
}

TEST(DType, roundoff_is_half_the_gap_after_one) {
  EXPECT_EQ(unit_roundoff(DType::F64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::F32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::BF16), 1.0 / 256);
  EXPECT_EQ(unit_roundoff(DType::F16), 1.0 / 2048);
  EXPECT_EQ(unit_roundoff(DType::F8E4M3), 1.0 / 16);
  EXPECT_EQ(unit_roundoff(DType::F8E5M2), 1.0 / 8);
  EXPECT_EQ(unit_roundoff(DType::I32), 0);
}

TEST(DType, only_floating_types_round) {
  for (const DType dtype : kAll) EXPECT_EQ(is_floating(dtype), print(dtype).find('f') < 2);
}

TEST(DType, partial_states_are_f32_but_for_f64_results) {
  for (const DType dtype : kAll) {
    EXPECT_EQ(state_dtype(dtype), dtype == DType::F64 ? DType::F64 : DType::F32);
  }
}

}  // namespace
}  // namespace harpe
