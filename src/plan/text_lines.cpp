#include "plan/text_lines.h"

#include <algorithm>

namespace harpe::plan_text {

Checked<std::optional<Cursor>> TextLines::next() {
  while (!rest_.empty()) {
    const std::size_t length = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, length);
    rest_.remove_prefix(std::min(length + 1, rest_.size()));
    ++line_;
    Checked<Cursor> cursor = Cursor::open(line, file_);
    if (!cursor.ok()) return placed(std::move(cursor).error());
    if (!cursor->at_end()) return std::optional<Cursor>(std::move(cursor).value());
  }
  return std::optional<Cursor>();
}

Diag TextLines::placed(Diag diag) const {
  HP_CHECK(diag.where.has_value(), render(diag));
  diag.where->line = line_;
  for (DiagArg& arg : diag.args) {
    if (arg.name == "found" && arg == DiagArg("found", "the end of the text")) {
      arg = DiagArg("found", "the end of the line");
    }
  }
  return diag;
}

SourcePosition TextLines::position(const Cursor& line) const {
  return {file_, line_, line.position().column};
}

Diag TextLines::missing(std::string_view expected) const {
  Diag diag = make_diag(DiagCode::T001, {{"expected", expected}, {"found", "the end of the text"}});
  diag.where = SourcePosition{file_, line_ + 1, 1};
  return diag;
}

Checked<Ok> expect_end_of_line(const Cursor& line) {
  if (!line.at_end()) return line.unexpected("the end of the line");
  return Ok{};
}

}  // namespace harpe::plan_text
