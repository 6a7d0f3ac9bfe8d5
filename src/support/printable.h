#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace harpe {

// Makes text from users and files safe to show. It escapes what a terminal may interpret or cannot
// show: control characters (including 0x80 to 0x9f), marks that reorder text, and bytes that are
// not UTF-8.

// Bytes of the well-formed UTF-8 sequence at `at` (RFC 3629); 0 if there is none.
// Requires: at < text.size().
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t at);
// The same for a character that is shown unchanged; 0 if it is escaped.
[[nodiscard]] std::size_t shown_length(std::string_view text, std::size_t at);

// On one line: `\n`, `\t`, `\x1b`.
[[nodiscard]] std::string make_printable(std::string_view text);
// The same, but line ends and tabs of `text` are kept.
[[nodiscard]] std::string make_lines_printable(std::string_view text);

// Printable; a text of more than 1,000 characters is cut to its beginning and end. A list ("1, 1,
// 1") is cut between its items: "[1, 1, … 19,992 more, 1, 1]".
[[nodiscard]] std::string abridge(std::string_view text);

}  // namespace harpe
