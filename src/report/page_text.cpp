#include "report/page_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "support/printable.h"

namespace harpe::page {
namespace {

// The largest unit that fits at least once into the value.
Unit largest_below(std::span<const Unit> units, double value) {
  Unit found = units.front();
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.size) found = unit;
  }
  return found;
}

void drop_trailing_zeros(std::string& text) {
  if (text.find('.') == std::string::npos) return;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
}

// The number of digits before the point; below 1 it is negative or 0, by the zeros after the point.
int places(double value) {
  return value == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
}

// Separates thousands by commas.
std::string apart(const std::string& text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > first && i < point && (point - i) % 3 == 0) out += ',';
    out += text[i];
  }
  return out;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : make_lines_printable(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string escape_prose(std::string_view text) {
  std::string out;
  bool code = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t tick = text.find('`', at);
    const bool paired = tick != text.npos && (code || text.find('`', tick + 1) != text.npos);
    out += escape(text.substr(at, paired ? tick - at : text.npos));
    if (!paired) break;
    out += code ? "</code>" : "<code>";
    code = !code;
    at = tick + 1;
  }
  return out;
}

std::string print_figure(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  std::string text = fmt::format("{:.{}f}", value, std::clamp(digits - places(value), 0, 9));
  drop_trailing_zeros(text);
  return apart(text);
}

Column column_of(const Unit& unit, double largest, int digits) {
  return {.unit = unit, .decimals = std::clamp(digits - places(largest / unit.size), 0, 3)};
}

std::string print_in(const Column& column, double value) {
  return apart(fmt::format("{:.{}f}", value / column.unit.size, column.decimals));
}

std::string print_count(std::int64_t value) { return print_figure(static_cast<double>(value), 19); }

std::string print_short_count(std::int64_t value) {
  if (value >= 1'000'000'000) return print_figure(static_cast<double>(value) * 1e-9) + " G";
  if (value >= 1'000'000) return print_figure(static_cast<double>(value) * 1e-6) + " M";
  return print_count(value);
}

std::string print_share(double share) {
  const double percent = 100 * share;
  return (std::abs(percent) < 9.95 ? print_figure(percent, percent < 0.95 ? 1 : 2)
                                   : print_figure(std::round(percent))) +
         " %";
}

Unit time_unit(Picoseconds largest) {
  constexpr std::array<Unit, 5> kUnits = {Unit{"ps", 1}, Unit{"ns", 1e3}, Unit{"µs", 1e6},
                                          Unit{"ms", 1e9}, Unit{"s", 1e12}};
  return largest_below(std::span(kUnits).subspan(1), static_cast<double>(largest.value));
}

Unit byte_unit(double largest) {
  constexpr std::array<Unit, 5> kUnits = {Unit{"B", 1}, Unit{"KiB", 1024.0}, Unit{"MiB", 1048576.0},
                                          Unit{"GiB", 1073741824.0}, Unit{"TiB", 1099511627776.0}};
  return largest_below(kUnits, largest);
}

Unit rate_unit(double largest) {
  constexpr std::array<Unit, 6> kUnits = {Unit{"op/s", 1},     Unit{"Kop/s", 1e3},
                                          Unit{"Mop/s", 1e6},  Unit{"Gop/s", 1e9},
                                          Unit{"Top/s", 1e12}, Unit{"Pop/s", 1e15}};
  return largest_below(kUnits, largest);
}

std::string print_in(const Unit& unit, double value, int digits) {
  return print_figure(value / unit.size, digits);
}

std::string print_time(Picoseconds time) {
  const Unit unit = time_unit(time);
  return print_in(unit, static_cast<double>(time.value)) + " " + std::string(unit.name);
}

std::string print_bytes(double bytes) {
  const Unit unit = byte_unit(bytes);
  return print_in(unit, bytes) + " " + std::string(unit.name);
}

std::string print_bandwidth(double bytes_per_second) {
  constexpr std::array<Unit, 5> kUnits = {Unit{"B/s", 1}, Unit{"KB/s", 1e3}, Unit{"MB/s", 1e6},
                                          Unit{"GB/s", 1e9}, Unit{"TB/s", 1e12}};
  const Unit unit = largest_below(kUnits, bytes_per_second);
  return print_in(unit, bytes_per_second) + " " + std::string(unit.name);
}

std::string print_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  drop_trailing_zeros(text);
  return text == "-0" ? "0" : text;
}

}  // namespace harpe::page
