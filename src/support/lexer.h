#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace harpe {

enum class TokenKind : std::uint8_t { Identifier, Integer, Float, String, Punctuation, End };

struct Token {
  TokenKind kind;
  std::string_view text;  // a view into the source; a String's text is without its quotes
  std::int64_t line;
  std::int64_t column;
};

// A position in a token sequence, on which the recursive-descent parsers of all text forms are
// built. The source must outlive it. Every `expect_…` fails with T001 at the current token.
class Cursor {
 public:
  // Errors: T002, T004.
  [[nodiscard]] static Checked<Cursor> open(std::string_view source, std::string file = "");

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  [[nodiscard]] bool at_end() const { return peek().kind == TokenKind::End; }
  [[nodiscard]] bool at(std::string_view text) const;  // identifier or punctuation with this text
  [[nodiscard]] bool at(TokenKind kind) const { return peek().kind == kind; }

  Token take();
  bool accept(std::string_view text);  // take it if it is next
  [[nodiscard]] Checked<Ok> expect(std::string_view text);
  [[nodiscard]] Checked<std::string> expect_identifier(std::string_view what);
  [[nodiscard]] Checked<std::int64_t> expect_integer(std::string_view what);  // Errors: T001, T003
  [[nodiscard]] Checked<double> expect_number(std::string_view what);
  [[nodiscard]] Checked<std::string> expect_string(std::string_view what);

  [[nodiscard]] Diag unexpected(std::string_view expected) const;  // T001 here
  [[nodiscard]] SourcePosition position() const;                   // of the next token
  [[nodiscard]] Diag locate(Diag diag, const Token& token) const;  // diag, placed at `token`

 private:
  Cursor(std::vector<Token> tokens, std::string file)
      : tokens_(std::move(tokens)), file_(std::move(file)) {}

  std::vector<Token> tokens_;
  std::string file_;
  std::size_t next_ = 0;
};

// Shortest text that reads back as the same double; always holds a `.` or an exponent.
[[nodiscard]] std::string print_double(double value);

}  // namespace harpe
