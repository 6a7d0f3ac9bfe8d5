#include "exec/cuda/kernels/attention/attention_positions.h"

#include <gtest/gtest.h>

namespace harpe::cuda {
namespace attention_positions_test {

PositionRule ahead(std::int64_t lead) { return {.lead = lead, .window = 0}; }

// Blocks of 100 positions on one rank of two: queries 0 and 3, keys 0, 3, 1 and 2.
struct Zigzag {
  AttentionSpec spec{.panels = {{.rows = 100}, {.rows = 100}},
                     .chunks = {{.rows = 100}, {.rows = 100}, {.rows = 100}, {.rows = 100}}};
  std::vector<Meeting> meetings = {{.panel = 0, .chunk = 0, .rule = ahead(0)},
                                   {.panel = 1, .chunk = 0, .rule = ahead(300)},
                                   {.panel = 1, .chunk = 1, .rule = ahead(0)},
                                   {.panel = 1, .chunk = 2, .rule = ahead(200)},
                                   {.panel = 1, .chunk = 3, .rule = ahead(100)}};

  [[nodiscard]] bool place() { return place_by_rules(spec, meetings); }
};

TEST(AttentionPositions, lie_as_far_apart_as_each_meeting_says) {
  Zigzag zigzag;
  ASSERT_TRUE(zigzag.place());
  EXPECT_TRUE(zigzag.spec.causal);
  EXPECT_EQ(zigzag.spec.panels[0].position, 0);
  EXPECT_EQ(zigzag.spec.panels[1].position, 300);
  const std::int64_t positions[] = {0, 300, 100, 200};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(zigzag.spec.chunks[i].position, positions[i]);
  EXPECT_TRUE(is_hidden(zigzag.spec, zigzag.spec.panels[0], zigzag.spec.chunks[2]));
  EXPECT_FALSE(is_hidden(zigzag.spec, zigzag.spec.panels[1], zigzag.spec.chunks[2]));
}

TEST(AttentionPositions, are_none_where_meetings_contradict_each_other) {
  Zigzag zigzag;
  zigzag.meetings.push_back({.panel = 0, .chunk = 1, .rule = ahead(300)});
  EXPECT_FALSE(zigzag.place());
}

TEST(AttentionPositions, are_none_where_a_panel_would_see_what_it_does_not_meet) {
  Zigzag zigzag;
  zigzag.meetings.erase(zigzag.meetings.begin() + 3);
  zigzag.meetings.push_back({.panel = 0, .chunk = 2, .rule = ahead(-100)});
  EXPECT_FALSE(zigzag.place());
}

TEST(AttentionPositions, of_keys_that_all_see_are_before_the_queries) {
  AttentionSpec spec{.panels = {{.rows = 100}}, .chunks = {{.rows = 100}, {.rows = 50}}};
  const Meeting meetings[] = {{.panel = 0, .chunk = 0, .rule = ahead(0)},
                              {.panel = 0, .chunk = 1, .rule = std::nullopt}};
  ASSERT_TRUE(place_by_rules(spec, meetings));
  EXPECT_TRUE(spec.causal);
  const std::int64_t first = spec.panels[0].position;
  EXPECT_EQ(spec.chunks[0].position, first);  // the diagonal
  EXPECT_LE(spec.chunks[1].position + spec.chunks[1].rows - 1, first);
  EXPECT_GE(spec.chunks[1].position, 0);
}

TEST(AttentionPositions, need_no_mask_where_all_meet) {
  AttentionSpec spec{.panels = {{.rows = 100}}, .chunks = {{.rows = 100}, {.rows = 50}}};
  const Meeting meetings[] = {{.panel = 0, .chunk = 0}, {.panel = 0, .chunk = 1}};
  ASSERT_TRUE(place_by_rules(spec, meetings));
  EXPECT_FALSE(spec.causal);
  EXPECT_FALSE(place_by_rules(spec, std::span(meetings).first(1)));
}

}  // namespace attention_positions_test
}  // namespace harpe::cuda
