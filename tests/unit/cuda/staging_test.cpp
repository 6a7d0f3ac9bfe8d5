#include "exec/cuda/target/staging.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace harpe::cuda {
namespace {

using actions::Assign;
using actions::Rows;

// Executes a move as a GPU would.
void run(const Assign& move) {
  for (std::int64_t slot = 0; slot < move.slots.capacity; ++slot) {
    move.rows.for_each([&](const auto& walk) {
      const auto at = [&](std::size_t operand) {
        return walk.offset(operand) + slot * move.slots.strides[operand];
      };
      std::memcpy(move.to.data + at(0) * 4, move.from.data + at(1) * 4,
                  static_cast<std::size_t>(move.rows.length()) * 4);
    });
  }
}

std::byte* bytes_of(std::vector<std::int32_t>& numbers) {
  return reinterpret_cast<std::byte*>(numbers.data());
}

// 3 x 4 blocks of rows of 5, with gaps and in another order at the destination.
Assign strided(std::vector<std::int32_t>& to, std::vector<std::int32_t>& from) {
  const std::int64_t lengths[] = {3, 4, 5};
  const std::vector<std::int64_t> strides[] = {{7, 40, 1}, {100, 9, 1}};
  Assign move;
  move.to = {.data = bytes_of(to), .dtype = DType::I32};
  move.from = {.data = bytes_of(from), .dtype = DType::I32};
  move.rows = Rows(lengths, strides);
  return move;
}

TEST(Staging, brings_every_element_where_the_move_does) {
  std::vector<std::int32_t> from(400);
  std::iota(from.begin(), from.end(), 1);
  std::vector<std::int32_t> wanted(400, 0);
  std::vector<std::int32_t> found(400, 0);
  run(strided(wanted, from));
  const Assign move = strided(found, from);
  ASSERT_EQ(image_bytes(move), 3 * 4 * 5 * 4);
  std::vector<std::int32_t> here(60, -1);
  const StagedMove packing = stage(move, bytes_of(here), nullptr);
  run(packing.pack);
  EXPECT_EQ(std::ranges::count(here, -1), 0) << "the image is dense";
  std::vector<std::int32_t> there = here;
  run(stage(move, nullptr, bytes_of(there)).land);
  EXPECT_EQ(found, wanted);
}

TEST(Staging, takes_along_how_many_rows_are_used) {
  std::vector<std::int32_t> from(64);
  std::vector<std::int32_t> to(64);
  std::int32_t used = 3;
  std::int32_t noted = 0;
  Assign move;
  move.to = {.data = bytes_of(to), .dtype = DType::I32};
  move.from = {.data = bytes_of(from), .dtype = DType::I32};
  const std::int64_t lengths[] = {6};
  const std::vector<std::int64_t> strides[] = {{1}, {1}};
  move.rows = Rows(lengths, strides);
  move.slots = {
      .used = {.rows = &used, .before = 2}, .capacity = 5, .strides = {8, 12}, .result = &noted};
  ASSERT_EQ(image_bytes(move), 128 + 16) << "30 elements, then the number";
  std::vector<std::int32_t> image(36);
  const StagedMove staged = stage(move, bytes_of(image), bytes_of(image));
  EXPECT_EQ(staged.pack.slots.used.rows, &used);
  EXPECT_EQ(staged.pack.slots.result, image.data() + 32);
  EXPECT_EQ(staged.land.slots.used.rows, image.data() + 32);
  EXPECT_EQ(staged.land.slots.used.before, 2);
  EXPECT_EQ(staged.land.slots.result, &noted);
  EXPECT_EQ(staged.pack.slots.strides, (std::array<std::int64_t, 2>{6, 12}));
  EXPECT_EQ(staged.land.slots.strides, (std::array<std::int64_t, 2>{8, 6}));
}

TEST(Staging, has_no_image_of_nothing) {
  const std::int64_t lengths[] = {0, 4};
  const std::vector<std::int64_t> strides[] = {{4, 1}, {4, 1}};
  Assign move;
  move.rows = Rows(lengths, strides);
  EXPECT_EQ(image_bytes(move), 0);
  EXPECT_EQ(stage(move, nullptr, nullptr).pack.rows.count(), 0);
}

}  // namespace
}  // namespace harpe::cuda
