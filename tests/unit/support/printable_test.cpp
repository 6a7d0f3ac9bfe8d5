#include "support/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace harpe {
namespace {

TEST(Printable, leaves_text_as_it_is) {
  EXPECT_EQ(make_printable("ring `é` 12 µs …"), "ring `é` 12 µs …");
  EXPECT_EQ(make_printable(""), "");
}

TEST(Printable, escapes_what_terminals_obey) {
  EXPECT_EQ(make_printable("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(make_printable(std::string_view("a\nb\tc\rd\0e", 9)), "a\\nb\\tc\\rd\\x00e");
  EXPECT_EQ(make_printable("\xc2\x9b"
                           "31m"),
            "\\xc2\\x9b31m");  // CSI as one character
  EXPECT_EQ(make_printable("a\u202e"
                           "b"),
            "a\\xe2\\x80\\xaeb");  // from right to left
}

TEST(Printable, escapes_bytes_that_are_no_utf_8) {
  EXPECT_EQ(make_printable("a\xff"
                           "b\xc3"),
            "a\\xffb\\xc3");
  EXPECT_EQ(make_printable("\xc0\x80"), "\\xc0\\x80");                    // longer than need be
  EXPECT_EQ(make_printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half a surrogate pair
  EXPECT_EQ(make_printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(Printable, keeps_the_ends_of_lines_where_asked) {
  EXPECT_EQ(make_lines_printable("a\n\tb\r\x1b\n"), "a\n\tb\\r\\x1b\n");
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Abridge, leaves_a_thousand_characters) {
  const std::string long_name = repeat("é", 1000);
  EXPECT_EQ(abridge(long_name), long_name);
}

TEST(Abridge, leaves_out_the_middle_of_more_and_counts_it) {
  EXPECT_EQ(abridge(repeat("é", 1001)),
            repeat("é", 160) + " … 801 more characters … " + repeat("é", 40));
  EXPECT_EQ(abridge(repeat("\x1b", 100'000)),
            repeat("\\x1b", 160) + " … 99,800 more characters … " + repeat("\\x1b", 40));
}

TEST(Abridge, leaves_out_whole_items_of_a_list) {
  const std::string shape = "(" + repeat("77, ", 19'999) + "77)";
  EXPECT_EQ(abridge(shape), "(" + repeat("77, ", 39) + "… 19,952 more" + repeat(", 77", 9) + ")");
}

}  // namespace
}  // namespace harpe
