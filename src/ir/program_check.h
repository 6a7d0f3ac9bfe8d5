#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "support/diag.h"

// Well-formedness, item by item, so that the parser can name the line. The argument `name` of every
// diagnostic is the offending name as the text has it. For templates and ground programs.
namespace harpe {

constexpr std::int64_t kMaxAxisSize = std::int64_t{1} << 40;

// Errors: P001, P002, P009, P102.
[[nodiscard]] Checked<Ok> check_param(const Program& program, std::size_t index);
// Errors: P001, P002, P003, P009, P010, P020, P030, P064, P103.
[[nodiscard]] Checked<Ok> check_decl(const Program& program, std::size_t index);
// The nest's own line. Errors: P001, P002, P003, P005.
[[nodiscard]] Checked<Ok> check_nest(const Program& program, std::size_t index);
// Everything except the leaf. Errors: P002, P003, P004, P006, P012 .. P014, P031; check_masks'.
[[nodiscard]] Checked<Ok> check_stmt(const Program& program, const Nest& nest, const Stmt& stmt);

// The masks of a statement, individually and together. Errors: P002, P007 .. P010, P020, P023,
// P024, P032 .. P036, P039 .. P041.
[[nodiscard]] Checked<Ok> check_masks(const Program& program, const Nest& nest, const Stmt& stmt);
// The sizes of masks' tables against their axes. Requires: ground, check_masks. Errors: P037, P038.
[[nodiscard]] Checked<Ok> check_mask_sizes(const Program& program, const Nest& nest,
                                           const Stmt& stmt);
// The condition of a mask or a buffer is a bool or integer parameter. Errors: P002, P009.
[[nodiscard]] Checked<Ok> check_condition(const Program& program, const std::string& where,
                                          const std::string& condition);

// A statement of a `given` nest accesses inputs only. Errors: P025.
[[nodiscard]] Checked<Ok> check_given(const Program& program, const Nest& nest, const Stmt& stmt);

// Ragged axes, routes and the leaves that follow them. Requires: ground; the rules above.
// Errors: P050 .. P059.
[[nodiscard]] Checked<Ok> check_routing(const Program& program);

// All of the above except routing, in order; `given` nests are checked as nests of preparation_of.
[[nodiscard]] Checked<Ok> check_items(const Program& program);

[[nodiscard]] const Param* find_param(const Program& program, std::string_view name);
// Whether `value` (not a parameter's name) has this kind.
[[nodiscard]] bool is_of_kind(const Scalar& value, std::string_view kind);
// P009: a parameter is used where another kind is needed.
[[nodiscard]] Diag misused(const std::string& where, const Param& param, std::string_view expected);
// P102: a value has another kind.
[[nodiscard]] Diag wrong_kind(const Param& param, const Scalar& value);

[[nodiscard]] inline bool is_listed(const std::vector<std::string>& names,
                                    const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace harpe
