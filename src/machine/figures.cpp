#include "machine/figures.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace harpe {
namespace {

struct UnitName {
  std::string_view name;
  double factor;
  bool printed = true;  // units with false are only read
};

constexpr double kKibi = 1024;
constexpr std::array kTimes = {UnitName{"us", 1e-6}, UnitName{"ns", 1e-9, false},
                               UnitName{"ms", 1e-3, false}, UnitName{"s", 1, false}};
constexpr std::array kBandwidths = {UnitName{"gbs", 1e9}, UnitName{"tbs", 1e12, false},
                                    UnitName{"mbs", 1e6, false}, UnitName{"bs", 1}};
constexpr std::array kBytes = {UnitName{"gib", kKibi* kKibi* kKibi}, UnitName{"mib", kKibi* kKibi},
                               UnitName{"kib", kKibi}, UnitName{"b", 1}};
constexpr std::array kRates = {UnitName{"tflops", 1e12}, UnitName{"gflops", 1e9},
                               UnitName{"flops", 1}};

std::span<const UnitName> units_of(Unit unit) {
  switch (unit) {
    case Unit::None:
      break;
    case Unit::Time:
      return kTimes;
    case Unit::Bandwidth:
      return kBandwidths;
    case Unit::Bytes:
      return kBytes;
    case Unit::Rate:
      return kRates;
  }
  return {};
}

std::string_view wanted_unit(Unit unit) {
  switch (unit) {
    case Unit::None:
      return "a plain number";
    case Unit::Time:
      return "a time in us, ns, ms or s";
    case Unit::Bandwidth:
      return "a bandwidth in gbs, tbs, mbs or bs (bytes a second)";
    case Unit::Bytes:
      return "a size in b, kib, mib or gib";
    case Unit::Rate:
      return "a rate in tflops, gflops or flops (a second)";
  }
  return "";
}

std::string print_number(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

// Microseconds with as many digits as picoseconds need.
std::string print_time(Picoseconds time) {
  constexpr std::int64_t kInOne = 1000000;
  const std::int64_t size = time.value < 0 ? -time.value : time.value;
  std::string text = (time.value < 0 ? "-" : "") + std::to_string(size / kInOne);
  if (size % kInOne != 0) {
    const std::string digits = std::to_string(kInOne + size % kInOne).substr(1);
    text += "." + digits.substr(0, digits.find_last_not_of('0') + 1);
  }
  return text + "us";
}

std::string print_size(double value, Unit unit) {
  for (const UnitName& candidate : units_of(unit)) {
    if (!candidate.printed) continue;
    const double scaled = value / candidate.factor;
    // Sizes are printed in whole units, others in the first unit that gives the same double back.
    if (unit == Unit::Bytes && scaled != std::floor(scaled)) continue;
    if (unit != Unit::Bytes && value != 0 && std::abs(scaled) < 1e-3) continue;
    if (scaled * candidate.factor == value)
      return print_number(scaled) + std::string(candidate.name);
  }
  return print_number(value) + (unit == Unit::None ? "" : std::string(units_of(unit).back().name));
}

// Reads a number and its unit; returns the value in the base unit.
Checked<double> parse_quantity(Cursor& cursor, const Figure& figure, const std::string& line) {
  HP_TRY(const double number, cursor.expect_number("a number"));
  const std::span<const UnitName> units = units_of(figure.unit);
  // `sms=8 from`: after a number without a unit, the next word belongs to the line.
  if (units.empty()) return number;
  const Token word = cursor.peek();
  const std::string given = word.kind == TokenKind::Identifier ? std::string(word.text) : "no unit";
  const auto unit = std::ranges::find(units, given, &UnitName::name);
  if (unit == units.end()) {
    return cursor.locate(make_diag(DiagCode::M116, {{"line", line},
                                                    {"figure", figure.name},
                                                    {"unit", given},
                                                    {"wanted", wanted_unit(figure.unit)}}),
                         word);
  }
  cursor.take();
  return number * unit->factor;
}

Checked<Ok> parse_value(Cursor& cursor, const Figure& figure, const std::string& line) {
  if (const auto* const whole = std::get_if<std::int64_t*>(&figure.field)) {
    HP_TRY(**whole, cursor.expect_integer("an integer"));
    return Ok{};
  }
  const Token number = cursor.peek();
  HP_TRY(const double value, parse_quantity(cursor, figure, line));
  if (const auto* const real = std::get_if<double*>(&figure.field)) {
    **real = value;
    return Ok{};
  }
  constexpr double kLongest = 9e6;  // seconds; the most that 64 bits of picoseconds hold
  if (std::abs(value) > kLongest) {
    return cursor.locate(make_diag(DiagCode::T003, {{"text", number.text}, {"bits", 64}}), number);
  }
  *std::get<Picoseconds*>(figure.field) = from_seconds(value);
  return Ok{};
}

Diag unknown_figure(const Cursor& cursor, const Token& key, const std::vector<Figure>& figures) {
  std::vector<std::string> known;
  std::string words;
  for (const Figure& figure : figures) {
    known.emplace_back(figure.name);
    words += (words.empty() ? "`" : ", `") + known.back() + "`";
  }
  return cursor.locate(make_diag(DiagCode::T005, {{"kind", "figure"},
                                                  {"name", key.text},
                                                  {"hint", suggestion(key.text, known)},
                                                  {"words", words}}),
                       key);
}

}  // namespace

double value_of(const Figure& figure) {
  if (const auto* const real = std::get_if<double*>(&figure.field)) return **real;
  if (const auto* const whole = std::get_if<std::int64_t*>(&figure.field)) {
    return static_cast<double>(**whole);
  }
  return static_cast<double>(std::get<Picoseconds*>(figure.field)->value);
}

std::string print(const Figure& figure) {
  std::string out(figure.name);
  out += "=";
  if (const auto* const time = std::get_if<Picoseconds*>(&figure.field)) {
    return out + print_time(**time);
  }
  return out + print_size(value_of(figure), figure.unit);
}

std::string print(const std::vector<Figure>& figures) {
  std::string out;
  for (const Figure& figure : figures) {
    if (figure.required || value_of(figure) != figure.fallback) out += " " + print(figure);
  }
  return out;
}

Checked<Ok> parse_figures(Cursor& cursor, const std::vector<Figure>& figures,
                          const std::string& line) {
  std::vector<std::string_view> given;
  while (cursor.at(TokenKind::Identifier) && cursor.peek(1).text == "=") {
    const Token key = cursor.take();
    cursor.take();
    const auto figure = std::ranges::find(figures, key.text, &Figure::name);
    if (figure == figures.end()) return unknown_figure(cursor, key, figures);
    if (std::ranges::find(given, key.text) != given.end()) {
      return cursor.locate(
          make_diag(DiagCode::T006, {{"name", key.text}, {"item", "`" + line + "`"}}), key);
    }
    given.push_back(key.text);
    HP_REQUIRE_OK(parse_value(cursor, *figure, line));
  }
  for (const Figure& figure : figures) {
    if (!figure.required || std::ranges::find(given, figure.name) != given.end()) continue;
    return cursor.locate(make_diag(DiagCode::M111, {{"line", line}, {"figure", figure.name}}),
                         cursor.peek());
  }
  return Ok{};
}

Checked<Ok> check_range(const Figure& figure, const std::string& line) {
  const double value = value_of(figure);
  bool within = std::isfinite(value);
  std::string_view wanted = "0 or more";
  switch (figure.range) {
    case FigureRange::Positive:
      within = within && value > 0;
      wanted = "above 0";
      break;
    case FigureRange::NotNegative:
      within = within && value >= 0;
      break;
    case FigureRange::Fraction:
      within = within && value > 0 && value <= 1;
      wanted = "above 0 and at most 1";
      break;
  }
  if (within) return Ok{};
  const std::string shown = print(figure);
  return make_diag(DiagCode::M113, {{"line", line},
                                    {"figure", figure.name},
                                    {"value", shown.substr(shown.find('=') + 1)},
                                    {"wanted", wanted}});
}

}  // namespace harpe
