#include "schedule/named/gemm_shape.h"

#include <algorithm>
#include <optional>

namespace harpe {
namespace {

// The one axis of `names` that `others` has (or lacks); none if there is not exactly one.
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

}  // namespace

Checked<GemmShape> read_gemm(const Program& program) {
  const Diag refusal =
      make_diag(DiagCode::S603,
                {{"program", program.name},
                 {"expected", "one nest of one `matmul` statement with a [m, k] and b [k, n]"}});
  if (program.nests.size() != 1 || program.nests[0].stmts.size() != 1) return refusal;
  const Stmt& stmt = program.nests[0].stmts[0];
  if (!is_leaf(stmt.leaf, Leaf::Matmul) || stmt.operands.size() != 2 || stmt.targets.size() != 1) {
    return refusal;
  }
  const Buffer* a = find_buffer(program, stmt.operands[0].buffer);
  const Buffer* b = find_buffer(program, stmt.operands[1].buffer);
  const Buffer* c = find_buffer(program, stmt.targets[0].buffer);
  const bool renamed = !stmt.operands[0].renames.empty() || !stmt.operands[1].renames.empty();
  if (a == nullptr || b == nullptr || c == nullptr || renamed) return refusal;
  const auto m = pick_axis(axis_names(*a), axis_names(*b), false);
  const auto n = pick_axis(axis_names(*b), axis_names(*a), false);
  const auto k = pick_axis(axis_names(*a), axis_names(*b), true);
  if (!m || !n || !k) return refusal;
  return GemmShape{program.nests[0].name, a->name,           b->name, c->name, sized(program, *m),
                   sized(program, *n),    sized(program, *k)};
}

}  // namespace harpe
