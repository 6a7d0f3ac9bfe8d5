#pragma once

#include <string>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "machine/topology.h"
#include "support/lexer.h"

namespace harpe {

// Canonical text of every value (grammar: docs/ir.md, after commir.md 3). parse_x starts at the
// item's keyword, and parse(print(x)) == x. print ends with a newline.
// Errors: T0xx with line, column and what was expected; P0xx for names that do not resolve.
[[nodiscard]] std::string print(const Mesh& mesh);
[[nodiscard]] std::string print(const Topology& topology);
[[nodiscard]] std::string print(const Program& program);
[[nodiscard]] std::string print(const NormalForm& form);
// The items of its nests, one line each: "mm: par M.0 on a; stage b over a bulk".
[[nodiscard]] std::vector<std::string> print_steps(const NormalForm& form);

[[nodiscard]] Checked<Mesh> parse_mesh(Cursor& cursor);
[[nodiscard]] Checked<Topology> parse_topology(Cursor& cursor);
[[nodiscard]] Checked<Program> parse_program(Cursor& cursor);
[[nodiscard]] Checked<NormalForm> parse_form(Cursor& cursor);

// Shared with the schedule script and the plan.
[[nodiscard]] std::string print(const Scalar& scalar);
[[nodiscard]] std::string print(const Call& call);
[[nodiscard]] std::string print(const Poly& poly);
[[nodiscard]] std::string print_mesh_ref(const MeshRef& axes);  // `gpu` or `(node, gpu)`
[[nodiscard]] Checked<Scalar> parse_scalar(Cursor& cursor);
[[nodiscard]] Checked<Call> parse_call(Cursor& cursor);
[[nodiscard]] Checked<MeshRef> parse_mesh_ref(Cursor& cursor);

}  // namespace harpe
