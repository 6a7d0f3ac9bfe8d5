#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// A plan as on a whiteboard: a column per rank, a row per step of each nest. Each cell shows the
// data that has arrived for the step and its source, the rank's work, and the results that it
// receives from others afterwards. Blocks are named by the digits that they fix.
struct DrawnCell {
  std::vector<std::string> arrives;   // "k, v k0=2 < 1": from rank 1
  std::vector<std::string> works;     // "q0=0 k0=2"; empty: the mask hides everything
  std::vector<std::string> receives;  // "+ c m0=0 < 3": folded in; "= c m0=0 < 3": stays as it is
  friend bool operator==(const DrawnCell&, const DrawnCell&) = default;
};

struct DrawnStep {
  std::string label;             // "fwd, k0 step 2"
  std::vector<DrawnCell> ranks;  // in order
  friend bool operator==(const DrawnStep&, const DrawnStep&) = default;
};

struct Drawing {
  std::string title;                            // "attention on cp=4"
  std::vector<std::vector<std::string>> homes;  // per rank: blocks held before and after
  std::vector<DrawnStep> steps;
  friend bool operator==(const Drawing&, const Drawing&) = default;
};

// Requires: a verified plan.
[[nodiscard]] Drawing draw(const Plan& plan);

// A table in plain characters, and the same as an SVG image. Arrows lead from the rank that a block
// comes from.
[[nodiscard]] std::string print_text(const Drawing& drawing);
[[nodiscard]] std::string print_svg(const Drawing& drawing);

enum class DrawingFormat : std::uint8_t { Text, Svg };
// For plans with few ranks. Errors: U121. Requires: a verified plan.
[[nodiscard]] Checked<std::string> draw_plan(const Plan& plan, DrawingFormat format);

}  // namespace harpe
