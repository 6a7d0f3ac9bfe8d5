#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/axis_layout.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// Homes of inputs and outputs that the caller fixes. Schedules that differ are excluded.
struct Constraints {
  // Fixed homes. `digit` names an axis, not a digit, because schedules make the digits. In the
  // order of the buffers' names and of the mesh axes.
  std::vector<Place> homes;
  // The layout of every divided axis if Contiguous, or of the masked ones among them if Zigzag.
  // None: any layout.
  std::optional<AxisLayout> layout;
  [[nodiscard]] bool empty() const { return homes.empty() && !layout; }
  friend bool operator==(const Constraints&, const Constraints&) = default;
};

// Errors: I311 the first home or axis in which the form differs; Blocks::make's.
[[nodiscard]] Checked<Ok> check_constraints(const Program& program, const Mesh& mesh,
                                            const NormalForm& form, const Constraints& constraints);

}  // namespace harpe
