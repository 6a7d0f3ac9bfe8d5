#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "exec/cuda/kernels/attention/device/attention_order.h"
#include "exec/cuda/kernels/attention/device/kv_walk.h"

namespace harpe::device {
namespace {

struct Case {
  std::vector<KvExtent> chunks;
  KvView view{};
};

bool sees(const KvMask& mask, int query, int key) {
  if (mask.window > 0) return key <= query && key > query - mask.window;
  return !mask.causal || key <= query;
}

// True if some query (all_see: every query) sees this row of the chunk.
bool some_sees(const Case& c, const KvExtent& chunk, int row) {
  for (int query = c.view.queries.first; query <= c.view.queries.last; ++query) {
    if (sees(c.view.mask, query, chunk.position + row)) return true;
  }
  return false;
}
bool all_see(const Case& c, const KvExtent& chunk, int row) {
  for (int query = c.view.queries.first; query <= c.view.queries.last; ++query) {
    if (!sees(c.view.mask, query, chunk.position + row)) return false;
  }
  return true;
}

// The expected tiles, from the definition of the mask alone.
std::vector<KvTile> expected_tiles(const Case& c) {
  std::vector<KvTile> tiles;
  for (int at = 0; at < c.view.chunks; ++at) {
    const KvExtent& chunk = c.chunks[static_cast<std::size_t>(at)];
    for (int row = 0; row < chunk.rows; row += c.view.columns) {
      const int columns = std::min(c.view.columns, chunk.rows - row);
      bool some = false;
      bool all = columns == c.view.columns;
      for (int column = 0; column < columns; ++column) {
        some |= some_sees(c, chunk, row + column);
        all &= all_see(c, chunk, row + column);
      }
      if (some) tiles.push_back({at, row, columns, chunk.position + row, !all});
    }
  }
  if (tiles.empty()) tiles.push_back({0, c.chunks[0].rows, 0, c.chunks[0].position, true});
  return tiles;
}

void expect_walk(const Case& c) {
  KvWalk walk(c.chunks.data(), c.view);
  for (const KvTile& expected : expected_tiles(c)) {
    ASSERT_FALSE(walk.done());
    const KvTile tile = walk.tile();
    EXPECT_EQ(tile.chunk, expected.chunk);
    EXPECT_EQ(tile.row, expected.row);
    EXPECT_EQ(tile.columns, expected.columns);
    EXPECT_EQ(tile.position, expected.position);
    EXPECT_EQ(tile.masked, expected.masked);
    walk.advance();
  }
  EXPECT_TRUE(walk.done());
}

TEST(KvWalk, gives_the_tiles_that_some_query_sees_and_says_where_a_mask_is_needed) {
  std::mt19937 random(5);
  const auto draw = [&random](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int i = 0; i < 3000; ++i) {
    Case c;
    c.view.columns = 1 << draw(0, 3);
    c.view.chunks = draw(1, 4);
    for (int chunk = 0; chunk < c.view.chunks; ++chunk) {
      c.chunks.push_back({draw(1, 20), draw(-30, 60)});
    }
    c.view.mask = {draw(0, 1) == 1, draw(0, 1) == 1 ? draw(1, 30) : 0};
    c.view.queries.first = draw(-20, 60);
    c.view.queries.last = c.view.queries.first + draw(0, 15);
    SCOPED_TRACE(i);
    expect_walk(c);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(KvWalk, has_one_tile_of_nothing_where_no_key_is_visible) {
  const std::vector<KvExtent> chunks = {{128, 1000}, {64, 2000}};
  const KvView view{.mask = {true, 0}, .queries = {0, 127}, .chunks = 2, .columns = 128};
  KvWalk walk(chunks.data(), view);
  ASSERT_FALSE(walk.done());
  EXPECT_EQ(walk.chunk(), -1);
  EXPECT_EQ(walk.tile().row, 128);
  EXPECT_EQ(walk.tile().columns, 0);
  walk.advance();
  EXPECT_TRUE(walk.done());
}

TEST(AttentionTicket, names_every_tile_of_every_slice_once) {
  for (const auto& [tiles, slices, together] :
       {std::tuple{1, 1, 1}, {5, 12, 4}, {7, 10, 4}, {64, 32, 32}, {3, 5, 2}}) {
    std::set<std::pair<int, int>> seen;
    for (int ticket = 0; ticket < tiles * slices; ++ticket) {
      const AttentionTicket work = attention_ticket(ticket, tiles, slices, together);
      EXPECT_GE(work.tile, 0);
      EXPECT_LT(work.tile, tiles);
      EXPECT_GE(work.slice, 0);
      EXPECT_LT(work.slice, slices);
      seen.insert({work.tile, work.slice});
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(tiles * slices));
  }
}

TEST(AttentionTicket, begins_with_the_last_rows_of_the_first_group) {
  EXPECT_EQ(attention_ticket(0, 8, 6, 4).tile, 7);
  EXPECT_EQ(attention_ticket(3, 8, 6, 4).slice, 3);
  EXPECT_EQ(attention_ticket(4, 8, 6, 4).tile, 6);
  EXPECT_EQ(attention_ticket(32, 8, 6, 4).slice, 4);
  EXPECT_EQ(attention_ticket(34, 8, 6, 4).tile, 6);
}

}  // namespace
}  // namespace harpe::device
