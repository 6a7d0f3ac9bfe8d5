#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/lexer.h"

namespace harpe::plan_text {

// The lines of a text that hold something, one at a time: a million of them never stand in memory
// as tokens. The text and the file's name must outlive it.
class TextLines {
 public:
  // `text` begins at line `first_line` of the file.
  TextLines(std::string_view text, std::int64_t first_line, const std::string& file)
      : rest_(text), line_(first_line - 1), file_(file) {}

  // The next line that is neither blank nor a comment; none at the end. Errors: T002, T004, placed.
  [[nodiscard]] Checked<std::optional<Cursor>> next();
  // From a position in the last line, whose end looked like the text's, to one in the file.
  [[nodiscard]] Diag placed(Diag diag) const;
  // Of the next token of the last line, in the file.
  [[nodiscard]] SourcePosition position(const Cursor& line) const;
  // T001 behind the last line.
  [[nodiscard]] Diag missing(std::string_view expected) const;

 private:
  std::string_view rest_;
  std::int64_t line_;
  const std::string& file_;
};

// T001 where the line goes on.
[[nodiscard]] Checked<Ok> expect_end_of_line(const Cursor& line);

}  // namespace harpe::plan_text
