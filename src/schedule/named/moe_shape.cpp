#include "schedule/named/moe_shape.h"

#include <algorithm>

#include "ir/blocks.h"

namespace harpe {
namespace {

bool has_axis(const Buffer& buffer, const std::string& axis) {
  const std::vector<std::string> axes = axis_names(buffer);
  return std::ranges::find(axes, axis) != axes.end();
}

const Nest* nest_of_leaf(const Program& program, Leaf leaf) {
  const Nest* found = nullptr;
  for (const Nest& nest : program.nests) {
    if (!is_leaf(nest.stmts.front().leaf, leaf)) continue;
    if (found != nullptr || nest.stmts.size() != 1) return nullptr;
    found = &nest;
  }
  return found;
}

}  // namespace

Checked<MoeShape> read_moe(const Program& program) {
  const auto refused = [&] {
    return make_diag(DiagCode::S603,
                     {{"program", program.name},
                      {"expected",
                       "one nest of one `gather_rows` statement and one of `combine_rows` through "
                       "the same route, and beside them nests over its experts or its tokens"}});
  };
  const Nest* const dispatch = nest_of_leaf(program, Leaf::GatherRows);
  const Nest* const combine = nest_of_leaf(program, Leaf::CombineRows);
  if (dispatch == nullptr || combine == nullptr) return refused();
  const Route* const route = find_route_of(program, *dispatch);
  if (route == nullptr || find_route_of(program, *combine) != route) return refused();
  const auto sized = [&](const std::string& name) {
    return SizedAxis{name, size_of(*find_axis(program, name))};
  };
  MoeShape shape{.route = route->name,
                 .tokens = sized(route->choices[0]),
                 .experts = sized(route->slots[0]),
                 .slots = route->slots[1],
                 .by_token = {},
                 .by_expert = {},
                 .token_nests = {},
                 .whole_reads = {},
                 .dispatch = dispatch->name,
                 .expert_nests = {},
                 .combine = combine->name,
                 .sources = dispatch->stmts[0].operands[0].buffer,
                 .index = dispatch->stmts[0].operands[1].buffer,
                 .gathered = dispatch->stmts[0].targets[0].buffer,
                 .made = combine->stmts[0].operands[0].buffer,
                 .weights = combine->stmts[0].operands[2].buffer,
                 .result = combine->stmts[0].targets[0].buffer};
  for (const Buffer* const buffer : buffers_of(program)) {
    const bool tokens = has_axis(*buffer, shape.tokens.name);
    if (tokens) shape.by_token.push_back(buffer->name);
    if (!tokens && has_axis(*buffer, shape.experts.name)) shape.by_expert.push_back(buffer->name);
  }
  for (const Nest& nest : program.nests) {
    if (&nest == dispatch || &nest == combine) continue;
    const auto over = [&](const std::string& axis) {
      return std::ranges::find(nest.over, axis) != nest.over.end();
    };
    if (over(shape.tokens.name) == over(shape.experts.name)) return refused();
    (over(shape.tokens.name) ? shape.token_nests : shape.expert_nests).push_back(nest.name);
    for (const Stmt& stmt : nest.stmts) {
      for (const Access& operand : stmt.operands) {
        const bool all = std::ranges::any_of(operand.renames, [&](const Rename& rename) {
          return rename.axis == shape.tokens.name && rename.member.empty();
        });
        if (all) shape.whole_reads.emplace_back(nest.name, operand.buffer);
      }
    }
  }
  return shape;
}

}  // namespace harpe
