#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"
#include "support/lexer.h"

// Shared by the texts of plans and of launch plans (private to their printers and parsers).
namespace harpe::plan_text {

[[nodiscard]] std::string quote(std::string_view text);  // in backticks

void append(std::string& out, std::int64_t value);
// Prints `mm.A.st0.1` bare, as identifiers and dots; any other name as a string.
void append_name(std::string& out, std::string_view name);
[[nodiscard]] bool is_identifier(std::string_view text);
// An allocation from its rank on: `rank 0 mm.A.st0.1 buffer A … bytes 512`.
void append_alloc(std::string& out, const Alloc& alloc);

// V103 at `token`.
[[nodiscard]] Diag out_of_range(const Cursor& line, const Token& token, std::string_view what,
                                std::int64_t found, const std::string& expected);
// An integer in 0..largest. Errors, also of the functions below: T001, T003, V103.
[[nodiscard]] Checked<std::int64_t> parse_count(Cursor& line, std::string_view what,
                                                std::int64_t largest);
[[nodiscard]] Checked<std::int32_t> parse_small(Cursor& line, std::string_view what);
// A reference to one of the `count` items declared above.
[[nodiscard]] Checked<std::int64_t> parse_reference(Cursor& line, std::string_view what,
                                                    std::size_t count);
// The id that a line declares; it must be `next`, since ids are dense.
[[nodiscard]] Checked<Ok> expect_id(Cursor& line, std::string_view kind, std::size_t next);
[[nodiscard]] Checked<RankId> parse_rank(Cursor& line, const Blocks& blocks);  // `rank 3`
[[nodiscard]] Checked<std::string> parse_name(Cursor& line);  // what append_name prints

// A statement of the program: `mm.0`, by its index in the nest.
struct StatementName {
  std::string nest;
  std::int32_t stmt = 0;
};
[[nodiscard]] Checked<StatementName> parse_statement(Cursor& line, const Program& program);

// Parses what append_alloc prints. Errors: T0xx, V103, V104, V105.
[[nodiscard]] Checked<Alloc> parse_alloc(Cursor& line, const Blocks& blocks,
                                         const std::string& program);

// "has length 2, must have 3 (`M`, `N`, `K`)"
[[nodiscard]] std::string wrong_length(std::size_t length, const std::vector<std::string>& names);

// The enumerator, up to `last`, with the next word as its `print`.
template <class Enum>
std::optional<Enum> accept_word(Cursor& line, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (line.accept(print(static_cast<Enum>(i)))) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template <class Enum>
Checked<Enum> parse_word(Cursor& line, std::string_view what, Enum last) {
  if (const std::optional<Enum> value = accept_word(line, last)) return *value;
  return line.unexpected(what);
}

}  // namespace harpe::plan_text
