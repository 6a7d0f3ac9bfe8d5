#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/diag.h"
#include "support/lexer.h"
#include "support/units.h"

namespace harpe {

// `key=number` pairs of a machine's lines, with units by their kind.

enum class Unit : std::uint8_t { None, Time, Bandwidth, Bytes, Rate };

enum class FigureRange : std::uint8_t {
  Positive,
  NotNegative,
  Fraction
};  // Fraction: above 0, at most 1

// One figure of a line, bound to the field that holds it.
struct Figure {
  std::string_view name;
  Unit unit = Unit::None;
  FigureRange range = FigureRange::NotNegative;
  bool required = false;
  double fallback = 0;  // the value if it is not written, in the field's unit
  std::variant<double*, std::int64_t*, Picoseconds*> field;
};

// The value in the field's own unit; for a time, in picoseconds.
[[nodiscard]] double value_of(const Figure& figure);
// "latency=1.27us", in the largest unit that reads back as the same value.
[[nodiscard]] std::string print(const Figure& figure);
// All figures that differ from their fallback, each after a space.
[[nodiscard]] std::string print(const std::vector<Figure>& figures);

// Reads pairs into the fields, up to the first word that is no pair. `line` names the line in
// errors.
// Errors: T001, T003, T005, T006; M111 a required one is missing, M116 a unit of another kind.
[[nodiscard]] Checked<Ok> parse_figures(Cursor& cursor, const std::vector<Figure>& figures,
                                        const std::string& line);
// Errors: M113.
[[nodiscard]] Checked<Ok> check_range(const Figure& figure, const std::string& line);

}  // namespace harpe
