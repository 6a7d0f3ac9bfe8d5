#include "exec/group/tensor_heap.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

namespace harpe {
namespace {

TEST(TensorHeap, gives_pieces_apart_and_none_where_it_is_full) {
  TensorHeap heap(4 * kTensorAlignment + 1);
  EXPECT_EQ(heap.bytes(), 4 * kTensorAlignment);
  EXPECT_EQ(heap.take(1), 0);
  EXPECT_EQ(heap.take(kTensorAlignment + 1), kTensorAlignment);
  EXPECT_EQ(heap.longest(), kTensorAlignment);
  EXPECT_EQ(heap.taken(), 3 * kTensorAlignment);
  EXPECT_EQ(heap.take(kTensorAlignment + 1), std::nullopt);
  EXPECT_EQ(heap.take(std::numeric_limits<std::int64_t>::max()), std::nullopt);
  EXPECT_EQ(heap.take(kTensorAlignment), 3 * kTensorAlignment);
  EXPECT_EQ(heap.take(1), std::nullopt);
  EXPECT_EQ(heap.longest(), 0);
  EXPECT_EQ(TensorHeap(kTensorAlignment - 1).take(1), std::nullopt);
}

TEST(TensorHeap, joins_free_pieces_in_any_order) {
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1},
                            std::array{1, 0, 2}, std::array{1, 2, 0}, std::array{2, 0, 1}}) {
    TensorHeap heap(3 * kTensorAlignment);
    for (int piece = 0; piece < 3; ++piece) {
      EXPECT_EQ(heap.take(kTensorAlignment), piece * kTensorAlignment);
    }
    for (const int piece : order) heap.give_back(piece * kTensorAlignment);
    EXPECT_EQ(heap.taken(), 0);
    EXPECT_EQ(heap.longest(), heap.bytes());
    EXPECT_EQ(heap.take(heap.bytes()), 0);
  }
}

TEST(TensorHeap, keeps_pieces_apart_whatever_comes_and_goes) {
  TensorHeap heap(64 * kTensorAlignment);
  std::map<std::int64_t, std::int64_t> pieces;
  std::uint64_t state = 1;
  for (int step = 0; step < 20'000; ++step) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t drawn = state >> 33U;
    if (drawn % 2 == 0 && !pieces.empty()) {
      const auto piece =
          std::next(pieces.begin(), static_cast<std::ptrdiff_t>(drawn / 2 % pieces.size()));
      heap.give_back(piece->first);
      pieces.erase(piece);
      continue;
    }
    const auto bytes = static_cast<std::int64_t>(drawn % (8 * kTensorAlignment)) + 1;
    const std::int64_t longest = heap.longest();
    const std::optional<std::int64_t> offset = heap.take(bytes);
    ASSERT_EQ(offset.has_value(), bytes <= longest);
    if (!offset) continue;
    ASSERT_EQ(*offset % kTensorAlignment, 0);
    const auto next = pieces.lower_bound(*offset);
    ASSERT_TRUE(next == pieces.end() || *offset + bytes <= next->first);
    ASSERT_TRUE(next == pieces.begin() ||
                std::prev(next)->first + std::prev(next)->second <= *offset);
    ASSERT_LE(*offset + bytes, heap.bytes());
    pieces.emplace(*offset, bytes);
  }
}

}  // namespace
}  // namespace harpe
