#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/ir/text_support.h"

namespace harpe::ir_test {
namespace {

TEST(TextExamples, there_are_forty_three_items_of_all_kinds) {
  const std::vector<std::string> items = example_items();
  const auto count = [&](std::string_view keyword) {
    return std::ranges::count_if(items,
                                 [&](const std::string& i) { return i.starts_with(keyword); });
  };
  EXPECT_EQ(count("topo "), 1);
  EXPECT_EQ(count("mesh "), 6);
  EXPECT_EQ(count("program "), 6);
  EXPECT_EQ(count("commir "), 30);
}

TEST(TextExamples, every_item_prints_as_it_is_written) {
  for (const std::string& text : example_items()) {
    const Checked<Item> item = parse_text(text);
    ASSERT_TRUE(item.ok()) << text << render(item.error());
    EXPECT_EQ(print_item(*item), text);
  }
}

TEST(TextExamples, every_item_reads_back_as_the_same_value) {
  for (const std::string& text : example_items()) {
    const Item item = parse_text(text).value();
    const Item again = parse_text(print_item(item)).value();
    EXPECT_TRUE(again == item) << text;
    EXPECT_EQ(print_item(again), print_item(item));
  }
}

// Splits a text into tokens, so that a mutation exchanges, drops or repeats whole tokens.
std::vector<std::string> tokens_of(const std::string& text) {
  Cursor cursor = Cursor::open(text).value();
  std::vector<std::string> tokens;
  while (!cursor.at_end()) {
    const Token token = cursor.take();
    const std::string content(token.text);
    tokens.push_back(token.kind == TokenKind::String ? '"' + content + '"' : content);
  }
  return tokens;
}

TEST(TextExamples, a_damaged_item_is_refused_with_a_place_or_reads_as_a_fixed_point) {
  std::mt19937 random(7);
  const std::vector<std::string> items = example_items();
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> tokens = tokens_of(items[random() % items.size()]);
    const std::size_t at = random() % tokens.size();
    const std::size_t other = random() % tokens.size();
    switch (random() % 3) {
      case 0:
        tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        std::swap(tokens[at], tokens[other]);
        break;
      default:
        tokens[at] = tokens[other];
    }
    std::string text;
    for (const std::string& token : tokens) text += token + (random() % 8 == 0 ? "\n" : " ");
    const Checked<Item> item = parse_text(text);
    if (item.ok()) {
      const std::string printed = print_item(*item);
      const Checked<Item> again = parse_text(printed);
      ASSERT_TRUE(again.ok()) << printed << render(again.error());
      EXPECT_TRUE(*again == *item) << printed;
      EXPECT_EQ(print_item(*again), printed);
    } else {
      ++refused;
      EXPECT_TRUE(item.error().where.has_value()) << text << render(item.error());
      EXPECT_FALSE(render(item.error()).empty());
    }
  }
  EXPECT_GT(refused, 2000);
  EXPECT_LT(refused, 4000);
}

}  // namespace
}  // namespace harpe::ir_test
