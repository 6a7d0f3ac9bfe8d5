#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/lexer.h"

namespace harpe::plan_text {

// The non-empty lines of a text, one by one, so that the tokens of a million lines are never in
// memory at once. The text and the file's name must outlive it.
class TextLines {
 public:
  // `text` begins at line `first_line` of the file.
  TextLines(std::string_view text, std::int64_t first_line, const std::string& file)
      : rest_(text), line_(first_line - 1), file_(file) {}

  // The next line that is neither blank nor a comment; none at the end. Errors: T002, T004, placed.
  [[nodiscard]] Checked<std::optional<Cursor>> next();
  // Converts a diagnostic's position in the last line to one in the file.
  [[nodiscard]] Diag placed(Diag diag) const;
  // The position in the file of the last line's next token.
  [[nodiscard]] SourcePosition position(const Cursor& line) const;
  // T001 after the last line.
  [[nodiscard]] Diag missing(std::string_view expected) const;

 private:
  std::string_view rest_;
  std::int64_t line_;
  const std::string& file_;
};

// T001 unless the line ends here.
[[nodiscard]] Checked<Ok> expect_end_of_line(const Cursor& line);

}  // namespace harpe::plan_text
