#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/dtype.h"
#include "ir/program.h"
#include "support/lexer.h"

// Shared by the parsers and printers of this folder.
namespace harpe::text {

// `f(x), f(y), …`
template <class Items, class Print>
[[nodiscard]] std::string join(const Items& items, std::string_view separator, Print print_item) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    out += print_item(item);
  }
  return out;
}

[[nodiscard]] std::string print_names(const std::vector<std::string>& names);  // `a, b`
[[nodiscard]] std::string quote(const std::string& content);

// One or more items with commas between them.
template <class ParseItem>
[[nodiscard]] auto parse_list(Cursor& cursor, ParseItem parse_item)
    -> Checked<std::vector<std::decay_t<decltype(parse_item().value())>>> {
  std::vector<std::decay_t<decltype(parse_item().value())>> items;
  do {
    HP_TRY(auto item, parse_item());
    items.push_back(std::move(item));
  } while (cursor.accept(","));
  return items;
}

// `f(…)` with arguments that `parse_argument` reads.
template <class ParseArgument>
[[nodiscard]] Checked<Call> parse_call_of(Cursor& cursor, ParseArgument parse_argument) {
  Call call;
  HP_TRY(call.function, cursor.expect_identifier("a function name"));
  HP_REQUIRE_OK(cursor.expect("("));
  if (cursor.accept(")")) return call;
  HP_TRY(call.args, parse_list(cursor, parse_argument));
  HP_REQUIRE_OK(cursor.expect(")"));
  return call;
}

// T005 at `token`: unknown word; names the nearest and all valid words.
[[nodiscard]] Diag unknown_word(const Cursor& cursor, const Token& token, std::string_view kind,
                                const std::vector<std::string>& words);
// T006 at `token`: the attribute occurs twice.
[[nodiscard]] Diag given_twice(const Cursor& cursor, const Token& token, std::string_view item);

// The printed words of an enumeration whose last enumerator is `last`.
template <class Enum>
[[nodiscard]] std::vector<std::string> words_up_to(Enum last) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(last); ++i) {
    if (const std::string_view word = print(static_cast<Enum>(i)); !word.empty()) {
      words.emplace_back(word);
    }
  }
  return words;
}

// A word of an enumeration: T001 if there is no identifier, T005 for an unknown word.
template <class Enum>
[[nodiscard]] Checked<Enum> parse_word(Cursor& cursor, std::string_view kind,
                                       std::optional<Enum> (*parse)(std::string_view), Enum last) {
  if (!cursor.at(TokenKind::Identifier)) return cursor.unexpected("a " + std::string(kind));
  const Token token = cursor.take();
  if (const std::optional<Enum> value = parse(token.text)) return *value;
  return unknown_word(cursor, token, kind, words_up_to(last));
}

[[nodiscard]] Checked<DType> parse_dtype_word(Cursor& cursor);
[[nodiscard]] Checked<Monoid> parse_monoid_word(Cursor& cursor);

}  // namespace harpe::text
