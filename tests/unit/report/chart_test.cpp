#include "report/page_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harpe::page {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PageChart, scales_are_logarithmic_where_values_are_far_apart) {
  EXPECT_FALSE(fit_scale({100, 700}).logarithmic);
  EXPECT_TRUE(fit_scale({100, 800}).logarithmic);
}

TEST(PageChart, every_value_lies_inside_its_scale) {
  for (const std::vector<double>& values :
       {std::vector{5.0}, {3.0, 4.0, 5.0}, {1.0, 1000.0, 30.0}}) {
    const Scale scale = fit_scale(values);
    for (const double value : values) {
      EXPECT_GT(scale.position(value), 0);
      EXPECT_LT(scale.position(value), 1);
    }
  }
}

TEST(PageChart, ticks_are_round_and_inside) {
  EXPECT_THAT(ticks_of({.low = 0.3, .high = 9.7}, 5), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(ticks_of({.low = 40, .high = 3000, .logarithmic = true}, 6),
              ElementsAre(50, 100, 200, 500, 1000, 2000));
  EXPECT_THAT(ticks_of({.low = 1, .high = 1e9, .logarithmic = true}, 6).size(), testing::Le(10U));
  EXPECT_FALSE(ticks_of({.low = 100, .high = 140, .logarithmic = true}, 6).empty());
}

TEST(PageChart, a_scale_from_zero_ends_at_a_tick) {
  const Scale scale = zero_scale(1.45);
  EXPECT_EQ(scale.low, 0);
  EXPECT_NEAR(scale.high, 1.5, 1e-12);
}

TEST(PageChart, labels_keep_off_points_and_each_other) {
  Labels labels(300);
  labels.keep_clear(0.5, 150, 6);
  EXPECT_THAT(labels.draw(0.5, 150, "label", "first"), HasSubstr("dx=\"11\" dy=\"4\""));
  EXPECT_THAT(labels.draw(0.5, 150, "label", "second"),
              HasSubstr("text-anchor=\"end\" dx=\"-11\""));
  Labels full(20);
  full.keep_clear_line(0, 0, 1, 20);
  EXPECT_EQ(full.draw(0.5, 10, "label", "hidden"), "");
}

TEST(PageChart, shortens_by_characters_and_not_by_bytes) {
  EXPECT_EQ(shorten("µµµµ", 4), "µµµµ");
  EXPECT_EQ(shorten("µµµµµ", 4), "µµµ…");
  EXPECT_EQ(shorten("abcdef", 4), "abc…");
}

TEST(PageChart, bars_are_never_without_width) {
  Bars bars;
  bars.add(0.5, 0.5, 2, 10);
  EXPECT_EQ(bars.draw("k-compute"), "<path class=\"k-compute\" d=\"M500000 2h1v10h-1z\"/>");
  EXPECT_EQ(Bars().draw("k-compute"), "");
}

}  // namespace
}  // namespace harpe::page
