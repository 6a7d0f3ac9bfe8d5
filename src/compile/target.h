#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/instantiate.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// Parses words of a command line into values.

enum class TargetKind : std::uint8_t { Operator, OperatorFile, PlanFile };

// The kind by its suffix: `FILE.op`, `FILE.plan`, else an operator's name.
[[nodiscard]] TargetKind kind_of(std::string_view target);

// True if a name that is not shipped is probably a file's name.
[[nodiscard]] bool is_path(std::string_view name);

// The template of an operator or a `.op` file. Errors: U108, I101, T0xx, P0xx.
[[nodiscard]] Checked<Program> load_template(const std::string& target);

// "seq=4096" "causal=true" … Errors: U106, U107, T0xx.
[[nodiscard]] Checked<Bindings> parse_parameters(std::span<const std::string> words);

// The ground program. `inputs` are buffers that the caller names; if one exists only under a
// condition, its bool parameter is turned on. Errors: parse_parameters', instantiate's, X020, X021;
// an unknown parameter lists the known ones.
[[nodiscard]] Checked<Program> bind_program(const Program& templated,
                                            std::span<const std::string> parameters,
                                            std::span<const std::string> inputs);

// "node=2,gpu=4" -> `mesh node2_gpu4 = node:2, gpu:4`. Errors: U112, M1xx.
[[nodiscard]] Checked<Mesh> parse_mesh_option(std::string_view text);

}  // namespace harpe
