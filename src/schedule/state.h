#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// What a primitive reads and extends: the ground program, the mesh and the normal form under
// construction. A primitive is checked against the state and then applied to a copy, so a refusal
// leaves the caller's state unchanged.
struct ScheduleState {
  Program program;  // ground
  Mesh mesh;        // as the caller named it; the form's refinements are not applied
  NormalForm form;
  friend bool operator==(const ScheduleState&, const ScheduleState&) = default;
};

// The empty schedule: every buffer except temporaries is replicated, every nest is one leaf.
// Requires: program is ground, mesh passed check_mesh.
[[nodiscard]] ScheduleState start_schedule(const Program& program, const Mesh& mesh,
                                           std::string name);

// One digit of a tiled axis.
struct DigitInfo {
  std::size_t split = 0;     // index into NormalForm::splits
  std::size_t position = 0;  // in that split
  std::string name;
  std::string axis;
  std::optional<std::int64_t> extent;  // none: the remainder

  [[nodiscard]] std::int64_t blocks() const { return extent.value_or(1); }
};

// Look-ups that refuse with the shared codes S011-S022. Pointers refer to the state.
[[nodiscard]] Checked<const Axis*> require_axis(const ScheduleState& state,
                                                std::string_view name);  // S017
[[nodiscard]] Checked<const Buffer*> require_buffer(const ScheduleState& state,
                                                    std::string_view name);  // S012
[[nodiscard]] Checked<DigitInfo> require_digit(const ScheduleState& state,
                                               std::string_view name);  // S013
// A digit with an explicit extent; the remainder has one block. Errors: S013, S018.
[[nodiscard]] Checked<DigitInfo> require_explicit_digit(const ScheduleState& state,
                                                        std::string_view name);
// Index into NormalForm::nests. Errors: S011.
[[nodiscard]] Checked<std::size_t> require_nest(const ScheduleState& state, std::string_view name);
// Number of ranks along the axes of the (refined) mesh. Errors: S014, S015, S016.
[[nodiscard]] Checked<std::int64_t> require_mesh_axes(const ScheduleState& state,
                                                      const MeshRef& axes);
// Checks new names for digits or mesh axes. Both can be skew terms, and digits are tiled like axes,
// so all three share one name space; `replaced` is a digit that is removed. Errors: S021.
[[nodiscard]] Checked<Ok> require_fresh_names(const ScheduleState& state,
                                              const std::vector<std::string>& names,
                                              std::string_view replaced = "");

// A digit that a nest may bind: it belongs to an axis that the nest runs over and that is not
// whole, and the nest does not bind it elsewhere. Errors: S013, S022, S023, S024.
[[nodiscard]] Checked<DigitInfo> require_bindable(const ScheduleState& state, std::size_t nest,
                                                  std::string_view digit);

[[nodiscard]] const Nest& nest_of(const ScheduleState& state, std::size_t nest);
[[nodiscard]] bool is_sequential(const ScheduleState& state, std::size_t nest,
                                 std::string_view axis);

// The axes whose digits form the nest's iteration space. A nest over a route's choices has the
// experts' digits in place of the choice axis (commir.md 8).
[[nodiscard]] std::vector<std::string> iteration_axes(const Program& program, const Nest& nest);

// The iteration digits that select a block of an access: the buffer's digits, with renamed axes
// mapped by position.
[[nodiscard]] std::vector<std::string> digits_of(const ScheduleState& state, const Access& access);
[[nodiscard]] std::vector<std::string> digits_of(const ScheduleState& state, const Buffer& buffer);

// Where a digit or mesh axis is used, as text for a message: "`par q0` of nest `fwd`"; "" if
// nowhere. A table layout uses every digit of its axis.
[[nodiscard]] std::string find_use_of_digit(const NormalForm& form, std::string_view digit);
[[nodiscard]] std::string find_use_of_mesh_axis(const NormalForm& form, std::string_view axis);

// Index of `for digit` among the nest's items. Errors: S019.
[[nodiscard]] Checked<std::size_t> require_loop(const ScheduleState& state, std::size_t nest,
                                                std::string_view digit);

// "`a`, `b` and `c`", "`a`"; "nothing" for none.
[[nodiscard]] std::string quote_list(const std::vector<std::string>& names);
[[nodiscard]] bool contains(const std::vector<std::string>& names, std::string_view name);

}  // namespace harpe
