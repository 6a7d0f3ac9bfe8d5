#include "report/page_text.h"

#include <gtest/gtest.h>

namespace harpe::page {
namespace {

TEST(PageText, escapes_what_would_end_an_element_or_an_attribute) {
  EXPECT_EQ(escape("a<b> & \"c\" 'd'\x01\n"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\\x01\n");
}

TEST(PageText, makes_pairs_of_backticks_code_and_leaves_a_single_one) {
  EXPECT_EQ(escape_prose("`ring` takes < 2 s"), "<code>ring</code> takes &lt; 2 s");
  EXPECT_EQ(escape_prose("a ` b"), "a ` b");
  EXPECT_EQ(escape_prose("`a` and `b"), "<code>a</code> and `b");
  EXPECT_EQ(escape_prose("`<b>`"), "<code>&lt;b&gt;</code>");
  EXPECT_EQ(escape_prose(""), "");
}

TEST(PageText, prints_significant_digits_with_thousands_apart) {
  EXPECT_EQ(print_figure(0), "0");
  EXPECT_EQ(print_figure(0.04213), "0.0421");
  EXPECT_EQ(print_figure(412.345), "412");
  EXPECT_EQ(print_figure(2.50), "2.5");
  EXPECT_EQ(print_figure(1234567.8), "1,234,568");
  EXPECT_EQ(print_figure(-1234), "-1,234");
  EXPECT_EQ(print_count(15320), "15,320");
  EXPECT_EQ(print_count(100), "100");
  EXPECT_EQ(print_short_count(559322), "559,322");
  EXPECT_EQ(print_short_count(1115526), "1.12 M");
}

TEST(PageText, chooses_the_largest_unit_of_which_there_is_one) {
  EXPECT_EQ(print_time(Picoseconds(412'345'678)), "412 µs");
  EXPECT_EQ(print_time(Picoseconds(1'500'000'000)), "1.5 ms");
  EXPECT_EQ(print_time(Picoseconds(20)), "0.02 ns");
  EXPECT_EQ(print_bytes(1.5 * 1024 * 1024), "1.5 MiB");
  EXPECT_EQ(print_bytes(12), "12 B");
  EXPECT_EQ(print_bandwidth(450e9), "450 GB/s");
  EXPECT_EQ(rate_unit(989e12).name, "Top/s");
}

TEST(PageText, gives_a_column_equally_many_decimals) {
  const Column column = column_of(time_unit(from_microseconds(412.3)), 412.3e6, 4);
  EXPECT_EQ(print_in(column, 412.3e6), "412.3");
  EXPECT_EQ(print_in(column, 1500e6), "1,500.0");
  EXPECT_EQ(print_in(column, 0), "0.0");
}

TEST(PageText, prints_shares_as_percent) {
  EXPECT_EQ(print_share(0.264), "26 %");
  EXPECT_EQ(print_share(0.0364), "3.6 %");
  EXPECT_EQ(print_share(0.0041), "0.4 %");
  EXPECT_EQ(print_share(1), "100 %");
  EXPECT_EQ(print_share(0), "0 %");
}

}  // namespace
}  // namespace harpe::page
