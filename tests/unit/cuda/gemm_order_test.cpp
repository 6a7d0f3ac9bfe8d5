#include "exec/cuda/kernels/gemm/device/gemm_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "exec/cuda/device/shares.h"

namespace harpe::device {
namespace {

TilePlace place_in(int index, int rows, int columns, int group) {
  return place_of(index, group, divisor(group * columns),
                  [&](int first) { return divisor(std::min(rows - first, group)); });
}

TEST(GemmOrder, every_tile_has_one_place) {
  for (const int rows : {1, 2, 7, 16, 33}) {
    for (const int columns : {1, 3, 5, 32}) {
      for (const int group : {1, 4, 8, 16}) {
        std::set<std::pair<int, int>> seen;
        for (int index = 0; index < rows * columns; ++index) {
          const TilePlace place = place_in(index, rows, columns, group);
          ASSERT_TRUE(place.row >= 0 && place.row < rows) << rows << "x" << columns << " " << index;
          ASSERT_TRUE(place.column >= 0 && place.column < columns) << index;
          seen.emplace(place.row, place.column);
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(rows * columns));
      }
    }
  }
}

TEST(GemmOrder, tiles_of_a_band_follow_each_other_down_a_column) {
  EXPECT_EQ(place_in(1, 16, 4, 8).row, 1);
  EXPECT_EQ(place_in(1, 16, 4, 8).column, 0);
  EXPECT_EQ(place_in(8, 16, 4, 8).row, 0);
  EXPECT_EQ(place_in(8, 16, 4, 8).column, 1);
  EXPECT_EQ(place_in(32, 16, 4, 8).row, 8);
}

// Every K block of every tile belongs to exactly one unit.
TEST(GemmOrder, units_share_the_blocks_of_cut_tiles) {
  for (const int tiles : {1, 5, 66, 70}) {
    for (const int full : {0, 1, 5, 66}) {
      for (const int parts : {1, 2, 3, 12}) {
        if (full > tiles) continue;
        constexpr int kBlocks = 37;
        const Divisor by_parts = divisor(parts);
        std::vector<int> covered(static_cast<std::size_t>(tiles * kBlocks), 0);
        for (int at = 0; at < unit_count(tiles, full, parts); ++at) {
          const GemmUnit unit = unit_at(at, full, by_parts);
          ASSERT_LT(unit.tile, tiles);
          const int end = share_begin(kBlocks, unit.part + 1, divisor(unit.parts));
          for (int block = share_begin(kBlocks, unit.part, divisor(unit.parts)); block < end;
               ++block) {
            ++covered[static_cast<std::size_t>(unit.tile * kBlocks + block)];
          }
        }
        EXPECT_EQ(covered, std::vector<int>(covered.size(), 1))
            << tiles << " " << full << " " << parts;
        EXPECT_EQ(unit_at(unit_count(tiles, full, parts), full, by_parts).tile, tiles);
      }
    }
  }
}

}  // namespace
}  // namespace harpe::device
