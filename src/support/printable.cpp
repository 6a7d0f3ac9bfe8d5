#include "support/printable.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace harpe {
namespace {

constexpr std::size_t kMostCharacters = 1000;
constexpr std::size_t kFirst = 160;  // characters of a shortened text
constexpr std::size_t kLast = 40;
constexpr std::string_view kBetween = ", ";

bool continues(char c) { return static_cast<unsigned char>(c) >> 6U == 2; }

// The code point of a well-formed sequence.
std::uint32_t decode(std::string_view sequence) {
  constexpr std::uint32_t kLead[] = {0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = static_cast<unsigned char>(sequence[0]) & kLead[sequence.size() - 1];
  for (const char c : sequence.substr(1)) code = code << 6U | (static_cast<unsigned char>(c) & 63U);
  return code;
}

// Controls, line and paragraph separators, and the marks that reorder displayed text (UAX #9).
bool is_obeyed(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string escape_byte(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '\r') return "\\r";
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("\\x") + kHex[byte >> 4U] + kHex[byte & 15U];
}

std::string escape_all_but(std::string_view kept, std::string_view text) {
  std::string out;
  std::size_t copied = 0;  // `out` is complete up to here
  for (std::size_t at = 0; at < text.size();) {
    const bool is_kept = kept.find(text[at]) != std::string_view::npos;
    const std::size_t length = is_kept ? 1 : shown_length(text, at);
    if (length == 0) {
      out += text.substr(copied, at - copied);
      out += escape_byte(text[at]);
      copied = at + 1;
    }
    at += std::max<std::size_t>(length, 1);
  }
  out += text.substr(copied);
  return out;
}

// Where characters begin, and the end of the text; a byte that is not UTF-8 counts as a character.
std::vector<std::size_t> find_characters(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size();) {
    starts.push_back(at);
    at += std::max<std::size_t>(utf8_length(text, at), 1);
  }
  starts.push_back(text.size());
  return starts;
}

std::string with_thousands(std::size_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::size_t count_separators(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(kBetween); at != std::string_view::npos;
       at = text.find(kBetween, at + kBetween.size())) {
    ++count;
  }
  return count;
}

// `text` without the part between two places, extended to whole items of a list.
std::string leave_out(std::string_view text, std::size_t from, std::size_t to) {
  const std::size_t before = text.substr(0, from).rfind(kBetween);
  const std::size_t after = text.find(kBetween, to);
  if (before != std::string_view::npos && after != std::string_view::npos) {
    const std::size_t first = before + kBetween.size();
    const std::size_t items = 1 + count_separators(text.substr(first, after - first));
    return make_printable(text.substr(0, first)) + "… " + with_thousands(items) + " more" +
           make_printable(text.substr(after));
  }
  const std::size_t characters = find_characters(text.substr(from, to - from)).size() - 1;
  return make_printable(text.substr(0, from)) + " … " + with_thousands(characters) +
         " more characters … " + make_printable(text.substr(to));
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >> 5U == 6 ? 2 : lead >> 4U == 14 ? 3 : lead >> 3U == 30 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  const std::string_view sequence = text.substr(at, length);
  if (!std::ranges::all_of(sequence.substr(1), continues)) return 0;
  // Refuses overlong sequences, surrogates, and code points beyond Unicode.
  constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  const std::uint32_t code = decode(sequence);
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[length - 1] || is_surrogate || code > 0x10ffff ? 0 : length;
}

std::size_t shown_length(std::string_view text, std::size_t at) {
  const std::size_t length = utf8_length(text, at);
  return length == 0 || is_obeyed(decode(text.substr(at, length))) ? 0 : length;
}

std::string make_printable(std::string_view text) { return escape_all_but("", text); }

std::string make_lines_printable(std::string_view text) { return escape_all_but("\n\t", text); }

std::string abridge(std::string_view text) {
  if (text.size() <= kMostCharacters) return make_printable(text);
  const std::vector<std::size_t> starts = find_characters(text);
  const std::size_t characters = starts.size() - 1;
  if (characters <= kMostCharacters) return make_printable(text);
  return leave_out(text, starts[kFirst], starts[characters - kLast]);
}

}  // namespace harpe
