#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace harpe {

// Text from users and files, made safe to show. What a terminal may obey or cannot show is escaped:
// control characters (also those of 0x80 to 0x9f), marks that reorder text, and bytes that are no
// UTF-8.

// Bytes of the well-formed UTF-8 sequence at `at` (RFC 3629), 0 where there is none.
// Requires: at < text.size().
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t at);
// The same of a character that is shown as it is; 0 where it is escaped.
[[nodiscard]] std::size_t shown_length(std::string_view text, std::size_t at);

// On one line: `\n`, `\t`, `\x1b`.
[[nodiscard]] std::string make_printable(std::string_view text);
// The same, with the ends of lines and the tabs of `text`.
[[nodiscard]] std::string make_lines_printable(std::string_view text);

// Printable, and of more than 1,000 characters the beginning and the end. A list ("1, 1, 1") is cut
// between its items: "[1, 1, … 19,992 more, 1, 1]".
[[nodiscard]] std::string abridge(std::string_view text);

}  // namespace harpe
