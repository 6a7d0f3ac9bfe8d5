#include "schedule/named/gemm_shape.h"

#include <algorithm>
#include <optional>

namespace harpe {
namespace {

// The one axis of `names` that `others` has (or lacks); none if there are none or several.
std::optional<std::string> pick_axis(const std::vector<std::string>& names,
                                     const std::vector<std::string>& others, bool shared) {
  std::optional<std::string> found;
  for (const std::string& name : names) {
    const bool has = std::ranges::find(others, name) != others.end();
    if (has != shared) continue;
    if (found) return std::nullopt;
    found = name;
  }
  return found;
}

SizedAxis sized(const Program& program, const std::string& name) {
  const Axis* axis = find_axis(program, name);
  HP_CHECK(axis != nullptr, "buffer has an unknown axis `" + name + "`");
  return {name, size_of(*axis)};
}

// The nest as a GEMM; none if it is not one.
std::optional<GemmShape> read_product(const Program& program, const Nest& nest) {
  if (nest.stmts.size() != 1) return std::nullopt;
  const Stmt& stmt = nest.stmts[0];
  if (!is_leaf(stmt.leaf, Leaf::Matmul) || stmt.operands.size() != 2 || stmt.targets.size() != 1) {
    return std::nullopt;
  }
  const Buffer* a = find_buffer(program, stmt.operands[0].buffer);
  const Buffer* b = find_buffer(program, stmt.operands[1].buffer);
  const Buffer* c = find_buffer(program, stmt.targets[0].buffer);
  const bool renamed = !stmt.operands[0].renames.empty() || !stmt.operands[1].renames.empty();
  if (a == nullptr || b == nullptr || c == nullptr || renamed) return std::nullopt;
  const auto m = pick_axis(axis_names(*a), axis_names(*b), false);
  const auto n = pick_axis(axis_names(*b), axis_names(*a), false);
  const auto k = pick_axis(axis_names(*a), axis_names(*b), true);
  if (!m || !n || !k) return std::nullopt;
  return GemmShape{nest.name,          a->name,           b->name, c->name, sized(program, *m),
                   sized(program, *n), sized(program, *k)};
}

Diag refuse_program(const Program& program, std::string_view expected) {
  return make_diag(DiagCode::S603, {{"program", program.name}, {"expected", expected}});
}

}  // namespace

Checked<GemmShape> read_gemm(const Program& program) {
  std::optional<GemmShape> shape;
  if (program.nests.size() == 1) shape = read_product(program, program.nests[0]);
  if (shape) return *std::move(shape);
  return refuse_program(program, "one nest of one `matmul` statement with a [m, k] and b [k, n]");
}

Checked<NormShape> read_normalised_gemm(const Program& program) {
  const Diag refusal =
      refuse_program(program,
                     "a nest of one `matmul` statement with a [m, k] and b [k, n], and a nest of "
                     "one `add_rms_norm` statement of its result");
  if (program.nests.size() != 2 || program.nests[1].stmts.size() != 1) return refusal;
  std::optional<GemmShape> gemm = read_product(program, program.nests[0]);
  const Nest& nest = program.nests[1];
  const Stmt& stmt = nest.stmts[0];
  const bool fits = gemm && is_leaf(stmt.leaf, Leaf::AddRmsNorm) &&
                    stmt.operands[0].buffer == gemm->c && nest.over == std::vector{gemm->m.name};
  if (!fits) return refusal;
  return NormShape{*std::move(gemm), nest.name, stmt.operands[1].buffer, stmt.targets[0].buffer,
                   stmt.targets[1].buffer};
}

}  // namespace harpe
