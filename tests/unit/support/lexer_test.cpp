#include "support/lexer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace harpe {
namespace {

std::vector<Token> tokens_of(std::string_view source) {
  Cursor cursor = Cursor::open(source).value();
  std::vector<Token> tokens;
  while (!cursor.at_end()) tokens.push_back(cursor.take());
  return tokens;
}

std::vector<std::string> texts_of(std::string_view source) {
  std::vector<std::string> texts;
  for (const Token& token : tokens_of(source)) texts.emplace_back(token.text);
  return texts;
}

std::string refusal(std::string_view source, const std::string& file = "") {
  const Checked<Cursor> cursor = Cursor::open(source, file);
  return cursor.ok() ? "accepted" : render(cursor.error());
}

template <class T>
std::string refusal(const Checked<T>& result) {
  return result.ok() ? "accepted" : render(result.error());
}

TEST(Lexer, separates_tokens_of_every_kind) {
  const std::vector<Token> tokens = tokens_of("name_1 42 -7 1.5 \"two words\" ->");
  ASSERT_EQ(tokens.size(), 6U);
  const std::vector<TokenKind> kinds = {TokenKind::Identifier, TokenKind::Integer,
                                        TokenKind::Integer,    TokenKind::Float,
                                        TokenKind::String,     TokenKind::Punctuation};
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(tokens[i].kind, kinds[i]) << i;
  EXPECT_EQ(tokens[4].text, "two words");
}

TEST(Lexer, needs_no_spaces_where_tokens_cannot_run_together) {
  EXPECT_EQ(
      texts_of("A[m0@gpu]<-(E,C)"),
      (std::vector<std::string>{"A", "[", "m0", "@", "gpu", "]", "<-", "(", "E", ",", "C", ")"}));
  EXPECT_EQ(texts_of("[0..4,2|3,*]"),
            (std::vector<std::string>{"[", "0", "..", "4", ",", "2", "|", "3", ",", "*", "]"}));
  EXPECT_EQ(texts_of("R.T=2*M"), (std::vector<std::string>{"R", ".", "T", "=", "2", "*", "M"}));
}

TEST(Lexer, an_exponent_makes_a_float) {
  for (const std::string_view text : {"1e5", "1E5", "1.5e+3", "2e-09", "-0.0"}) {
    const std::vector<Token> tokens = tokens_of(text);
    ASSERT_EQ(tokens.size(), 1U) << text;
    EXPECT_EQ(tokens[0].kind, TokenKind::Float) << text;
  }
  EXPECT_EQ(texts_of("1e"), (std::vector<std::string>{"1", "e"}));
}

TEST(Lexer, drops_comments_to_the_end_of_the_line) {
  EXPECT_EQ(texts_of("a // b c \"\n// d\nc // e"), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(texts_of("a/b"), (std::vector<std::string>{"a", "/", "b"}));
}

TEST(Lexer, counts_lines_and_columns_from_one) {
  const std::vector<Token> tokens = tokens_of("a\r\n  b\n\n\t\"c\" d");
  EXPECT_EQ(tokens[1].line, 2);
  EXPECT_EQ(tokens[1].column, 3);
  EXPECT_EQ(tokens[2].line, 4);
  EXPECT_EQ(tokens[2].column, 2);
  EXPECT_EQ(tokens[3].column, 6);
}

TEST(Lexer, refuses_characters_that_start_no_token) {
  EXPECT_EQ(refusal("a\n b ! c"), "error[T002]: 2:4: character `!` cannot start a token");
  EXPECT_EQ(refusal("\xc3\xa9", "x.cir"),
            "error[T002]: x.cir:1:1: character 0xc3 cannot start a token");
  EXPECT_EQ(refusal(std::string_view("a\0", 2)),
            "error[T002]: 1:2: character 0x00 cannot start a token");
}

TEST(Lexer, refuses_a_string_that_its_line_does_not_close) {
  EXPECT_EQ(refusal("kernel \"abc\n\""),
            "error[T004]: 1:8: string is not closed on its line; close it with `\"`");
  EXPECT_EQ(refusal("\""),
            "error[T004]: 1:1: string is not closed on its line; close it with `\"`");
  EXPECT_EQ(refusal("\"\""), "accepted");
}

TEST(Lexer, takes_strings_that_can_be_shown) {
  EXPECT_EQ(refusal("\"12 µs\t…\""), "accepted");
  EXPECT_EQ(refusal("a \"b\x1b[2J\"", "x.op"),
            "error[T001]: x.op:1:5: expected a character that can be shown, found 0x1b");
  EXPECT_EQ(refusal("\"a\xff\""),
            "error[T001]: 1:3: expected a character that can be shown, found 0xff");
}

TEST(Cursor, takes_what_is_expected_and_stays_where_it_is_not) {
  Cursor cursor = Cursor::open("mesh a = 3", "f").value();
  EXPECT_TRUE(cursor.expect("mesh").ok());
  EXPECT_FALSE(cursor.accept("b"));
  EXPECT_EQ(cursor.expect_identifier("a name").value(), "a");
  EXPECT_EQ(refusal(cursor.expect(":")), "error[T001]: f:1:8: expected `:`, found `=`");
  EXPECT_TRUE(cursor.accept("="));
  EXPECT_EQ(refusal(cursor.expect_identifier("a name")),
            "error[T001]: f:1:10: expected a name, found `3`");
  EXPECT_EQ(cursor.expect_integer("a size").value(), 3);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(refusal(cursor.expect_string("a string")),
            "error[T001]: f:1:11: expected a string, found the end of the text");
}

TEST(Cursor, the_end_can_be_taken_for_ever) {
  Cursor cursor = Cursor::open("a").value();
  cursor.take();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cursor.take().kind, TokenKind::End);
  EXPECT_EQ(cursor.peek(5).kind, TokenKind::End);
}

TEST(Cursor, a_string_is_no_keyword) {
  Cursor cursor = Cursor::open("\"mesh\"").value();
  EXPECT_FALSE(cursor.at("mesh"));
  EXPECT_EQ(refusal(cursor.expect("mesh")), "error[T001]: 1:1: expected `mesh`, found \"mesh\"");
}

TEST(Cursor, integers_are_64_bits) {
  Cursor cursor =
      Cursor::open("9223372036854775807 -9223372036854775808 9223372036854775808").value();
  EXPECT_EQ(cursor.expect_integer("n").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(cursor.expect_integer("n").value(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(refusal(cursor.expect_integer("n")),
            "error[T003]: 1:42: number `9223372036854775808` does not fit 64 bits");
}

TEST(Cursor, numbers_are_finite_doubles) {
  Cursor cursor = Cursor::open("1 0.5 1e400").value();
  EXPECT_EQ(cursor.expect_number("x").value(), 1.0);
  EXPECT_EQ(cursor.expect_number("x").value(), 0.5);
  EXPECT_EQ(refusal(cursor.expect_number("x")),
            "error[T003]: 1:7: number `1e400` does not fit 64 bits");
}

TEST(PrintDouble, always_shows_that_it_is_no_integer) {
  EXPECT_EQ(print_double(3), "3.0");
  EXPECT_EQ(print_double(-0.0), "-0.0");
  EXPECT_EQ(print_double(0.1), "0.1");
  EXPECT_EQ(print_double(1e300), "1e+300");
  EXPECT_EQ(print_double(0.08838834764831845), "0.08838834764831845");
}

TEST(PrintDouble, reads_back_as_the_same_double) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const std::string text = print_double(value);
    Cursor cursor = Cursor::open(text).value();
    EXPECT_EQ(cursor.peek().kind, TokenKind::Float) << text;
    const Checked<double> back = cursor.expect_number("a number");
    ASSERT_TRUE(back.ok()) << text;
    EXPECT_EQ(*back, value) << text;
    EXPECT_TRUE(cursor.at_end()) << text;
  }
}

}  // namespace
}  // namespace harpe
