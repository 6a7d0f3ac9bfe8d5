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

// What a caller fixes of where inputs and outputs are held: a schedule keeps to it, or is none.
struct Constraints {
  // Buffers that live there. `digit` names an axis, not a digit: schedules make those. In the order
  // of the buffers' names, and of the mesh axes.
  std::vector<Place> homes;
  // Of every divided axis, Contiguous; or Zigzag, of those of them that masks go by. None: any.
  std::optional<AxisLayout> layout;
  [[nodiscard]] bool empty() const { return homes.empty() && !layout; }
  friend bool operator==(const Constraints&, const Constraints&) = default;
};

// Errors: I311 the first home or axis that the form has otherwise; Blocks::make's.
[[nodiscard]] Checked<Ok> check_constraints(const Program& program, const Mesh& mesh,
                                            const NormalForm& form, const Constraints& constraints);

}  // namespace harpe
