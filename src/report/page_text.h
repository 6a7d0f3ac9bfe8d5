#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/units.h"

// Texts and figures in the format of the report page.
namespace harpe::page {

// For element content and double-quoted attributes; control characters are dropped.
[[nodiscard]] std::string escape(std::string_view text);
// The same for a sentence: text between backticks becomes code.
[[nodiscard]] std::string escape_prose(std::string_view text);

// `digits` significant digits, no exponent, thousands separated: "1,532", "0.042".
[[nodiscard]] std::string print_figure(double value, int digits = 3);
[[nodiscard]] std::string print_count(std::int64_t value);
[[nodiscard]] std::string print_short_count(std::int64_t value);  // "9,204", "1.12 M"
[[nodiscard]] std::string print_share(double share);              // "26 %", "0.4 %"

// A unit and its size; one unit is used for a whole axis or column.
struct Unit {
  std::string_view name;
  double size = 1;
};
[[nodiscard]] Unit time_unit(Picoseconds largest);  // ns, µs, ms, s
[[nodiscard]] Unit byte_unit(double largest);       // B, KiB, MiB, GiB, TiB
[[nodiscard]] Unit rate_unit(double largest);       // op/s, Kop/s, …, Pop/s
[[nodiscard]] std::string print_in(const Unit& unit, double value, int digits = 3);  // without it
// A column's figures have equally many decimals, so that its largest figure has `digits` digits.
struct Column {
  Unit unit;
  int decimals = 0;
};
[[nodiscard]] Column column_of(const Unit& unit, double largest, int digits = 3);
[[nodiscard]] std::string print_in(const Column& column, double value);
[[nodiscard]] std::string print_time(Picoseconds time);              // "412 µs"
[[nodiscard]] std::string print_bytes(double bytes);                 // "1.5 GiB"
[[nodiscard]] std::string print_bandwidth(double bytes_per_second);  // "450 GB/s"

// A position or length in a drawing, with at most two decimals.
[[nodiscard]] std::string print_number(double value);

}  // namespace harpe::page
