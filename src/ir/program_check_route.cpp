#include <algorithm>
#include <cmath>

#include "ir/program_check.h"
#include "ir/routing.h"
#include "ir/text.h"
#include "leaves/leaf.h"

// Rules of dynamic routing (commir.md 8) for programs that this library's own leaves execute.
namespace harpe {
namespace {

constexpr std::int64_t kMostExperts = std::int64_t{1} << 24;

Checked<Ok> check_ragged_buffer(const Program& program, const Buffer& buffer) {
  const std::vector<std::string> names = axis_names(buffer);
  const Axis* ragged = nullptr;
  for (const std::string& name : names) {
    const Axis& axis = *find_axis(program, name);
    if (axis.of.empty()) continue;
    if (ragged != nullptr) {
      return make_diag(DiagCode::P055,
                       {{"buffer", buffer.name}, {"first", ragged->name}, {"second", axis.name}});
    }
    ragged = &axis;
    if (std::ranges::find(names, axis.of) == names.end()) {
      return make_diag(DiagCode::P051,
                       {{"buffer", buffer.name}, {"axis", axis.name}, {"of", axis.of}});
    }
  }
  return Ok{};
}

Checked<Ok> check_load(const Route& route) {
  if (!route.load) return Ok{};
  const Call& load = *route.load;
  const auto wrong = [&](std::string_view expected) {
    return make_diag(DiagCode::P058,
                     {{"route", route.name}, {"load", print(load)}, {"expected", expected}});
  };
  if (load.function == "uniform" && load.args.empty()) return Ok{};
  if (load.function != "zipf" || load.args.size() != 1) return wrong("`uniform()` or `zipf(s)`");
  const auto* const real = std::get_if<double>(&load.args[0]);
  const auto* const whole = std::get_if<std::int64_t>(&load.args[0]);
  const double exponent = real != nullptr    ? *real
                          : whole != nullptr ? static_cast<double>(*whole)
                                             : -1;
  return exponent >= 0 ? Checked<Ok>(Ok{}) : wrong("`zipf(s)` with a number s of at least 0");
}

// Requires: is_expert_route.
Checked<Ok> check_route(const Program& program, const Route& route) {
  const Buffer& index = *find_buffer(program, route.by);
  const auto wrong = [&](const std::string& problem) {
    return make_diag(DiagCode::P054,
                     {{"route", route.name}, {"buffer", index.name}, {"problem", problem}});
  };
  if (index.dtype != DType::I32 && index.dtype != DType::I64) {
    return wrong("holds `" + std::string(print(index.dtype)) + "`");
  }
  const bool fits = index.dims.size() == 2 && index.dims[0] == Dim(route.choices[0]) &&
                    index.dims[1] == Dim(route.choices[1]);
  if (!fits) return wrong("is not [" + route.choices[0] + ", " + route.choices[1] + "]");
  const auto size = [&](const std::string& axis) { return size_of(*find_axis(program, axis)); };
  if (size(route.choices[1]) > size(route.slots[0])) {
    return wrong("has " + std::to_string(size(route.choices[1])) + " choices of " +
                 std::to_string(size(route.slots[0])) + " experts");
  }
  HP_REQUIRE_OK(check_load(route));
  const std::int64_t slots = size_of(*find_axis(program, route.slots[1]));
  const std::int64_t tokens = size_of(*find_axis(program, route.choices[0]));
  if (route.policy != "exact" || slots >= tokens) return Ok{};
  return make_diag(
      DiagCode::P053,
      {{"route", route.name}, {"axis", route.slots[1]}, {"slots", slots}, {"tokens", tokens}});
}

bool goes_through(const Access& access, const Route& route, const std::string& axis) {
  return std::ranges::any_of(access.renames, [&](const Rename& rename) {
    return rename.axis == axis && rename.source == route.name && rename.member == axis;
  });
}

// The route of a statement that reads the route's index.
const Route* route_of(const Program& program, const Stmt& stmt) {
  for (const Rename& rename : stmt.operands[0].renames) {
    if (!rename.member.empty()) return find_route(program, rename.source);
  }
  return nullptr;
}

// The dimensions of a row besides the route's, in order.
std::vector<Dim> features_of(const Program& program, const Access& access, const Route& route) {
  std::vector<Dim> features;
  for (const Dim& dim : find_buffer(program, access.buffer)->dims) {
    const bool routed =
        dim == Dim(route.slots[0]) || dim == Dim(route.slots[1]) || dim == Dim(route.choices[0]);
    if (!routed) features.push_back(dim);
  }
  return features;
}

Checked<Ok> check_routed_leaf(const Program& program, const Nest& nest, const Stmt& stmt) {
  const auto needs = [&](const std::string& what) {
    return make_diag(DiagCode::P050, {{"nest", nest.name}, {"leaf", stmt.leaf}, {"what", what}});
  };
  const Access& rows = stmt.operands[0];
  const Access& index = stmt.operands[1];
  const Route* const route = route_of(program, stmt);
  if (route == nullptr) return needs("`" + rows.buffer + "` through a route");
  if (!is_expert_route(program, *route)) {
    return needs("a route whose slots are a ragged axis of its experts, not `" + route->name + "`");
  }
  HP_REQUIRE_OK(check_route(program, *route));
  if (index.buffer != route->by) {
    return needs("`" + route->by + "`, which route `" + route->name + "` is by, in place of `" +
                 index.buffer + "`");
  }
  const bool brings_back = goes_through(rows, *route, route->slots[1]);
  const bool through = brings_back ? goes_through(rows, *route, route->slots[0])
                                   : goes_through(rows, *route, route->choices[0]) &&
                                         goes_through(index, *route, route->choices[0]);
  if (!through) return needs("both rows and index through route `" + route->name + "`");
  if (features_of(program, rows, *route) != features_of(program, stmt.targets[0], *route)) {
    return needs("`" + rows.buffer + "` and `" + stmt.targets[0].buffer +
                 "` to have the same features");
  }
  if (brings_back != is_leaf(stmt.leaf, Leaf::CombineRows)) {
    return needs(brings_back ? "rows by token, not by slot" : "rows by slot, not by token");
  }
  if (!brings_back) return Ok{};
  const Buffer& weights = *find_buffer(program, stmt.operands[2].buffer);
  const bool fits =
      is_floating(weights.dtype) && weights.dims == find_buffer(program, route->by)->dims;
  return fits ? Checked<Ok>(Ok{})
              : needs("`" + weights.name + "` to hold a number per choice, [" + route->choices[0] +
                      ", " + route->choices[1] + "]");
}

// `(i, w) = topk(x)`: x [T, E], i and w [T, Kc].
Checked<Ok> check_topk(const Program& program, const Nest& nest, const Stmt& stmt) {
  const Buffer& logits = *find_buffer(program, stmt.operands[0].buffer);
  const Buffer& index = *find_buffer(program, stmt.targets[0].buffer);
  const Buffer& weight = *find_buffer(program, stmt.targets[1].buffer);
  const auto wrong = [&](const std::string& problem) {
    return make_diag(DiagCode::P059, {{"nest", nest.name},
                                      {"index", index.name},
                                      {"logits", logits.name},
                                      {"problem", problem}});
  };
  if (logits.dims.size() != 2 || index.dims.size() != 2 || logits.dims[0] != index.dims[0]) {
    return wrong("one is not [tokens, experts], or the other not [tokens, choices]");
  }
  if (weight.dims != index.dims) return wrong("`" + weight.name + "` has other dimensions");
  const std::int64_t choices = shape_of(program, index)[1];
  const std::int64_t experts = shape_of(program, logits)[1];
  if (choices <= experts) return Ok{};
  return wrong(std::to_string(choices) + " choices of " + std::to_string(experts) + " experts");
}

// `j = limit_choices(i[T=Ta])`: i has the dimensions of j, for all tokens.
Checked<Ok> check_limit(const Program& program, const Nest& nest, const Stmt& stmt) {
  const Buffer& wanted = *find_buffer(program, stmt.operands[0].buffer);
  const Buffer& kept = *find_buffer(program, stmt.targets[0].buffer);
  const auto wrong = [&](const std::string& what) {
    return make_diag(DiagCode::P060, {{"nest", nest.name}, {"what", what}});
  };
  for (const char* const what : {"capacity", "experts"}) {
    const double value = attribute_of(stmt, what, 0);
    if (value >= 1 && value <= kMostExperts && value == std::floor(value)) continue;
    return wrong("a whole number `" + std::string(what) + "` from 1 to " +
                 std::to_string(kMostExperts));
  }
  for (const Buffer* const buffer : {&wanted, &kept}) {
    if (buffer->dtype == DType::I32 || buffer->dtype == DType::I64) continue;
    return wrong("`" + buffer->name + "` to hold i32 or i64");
  }
  const bool pairs = kept.dims.size() == 2 && std::holds_alternative<std::string>(kept.dims[0]) &&
                     std::holds_alternative<std::string>(kept.dims[1]);
  const std::vector<Rename>& renames = stmt.operands[0].renames;
  const bool whole = pairs && wanted.dims == kept.dims && renames.size() == 1 &&
                     Dim(renames[0].axis) == kept.dims[0] &&
                     std::ranges::find(nest.whole, renames[0].source) != nest.whole.end() &&
                     size_of(*find_axis(program, renames[0].source)) ==
                         size_of(*find_axis(program, renames[0].axis));
  if (whole) return Ok{};
  return wrong("`" + wanted.name + "` and `" + kept.name +
               "` over [tokens, choices], and all tokens of the first by a whole axis");
}

// `(s, y) = add_rms_norm(x, r, w)`: all except w have equal dimensions; w has one of their axes,
// whole.
Checked<Ok> check_norm(const Program& program, const Nest& nest, const Stmt& stmt) {
  const auto wrong = [&](const std::string& what) {
    return make_diag(DiagCode::P065, {{"nest", nest.name}, {"what", what}});
  };
  const Buffer& x = *find_buffer(program, stmt.operands[0].buffer);
  const Buffer& weight = *find_buffer(program, stmt.operands[2].buffer);
  for (const std::vector<Access>* const accesses : {&stmt.operands, &stmt.targets}) {
    for (const Access& access : *accesses) {
      if (!access.renames.empty()) return wrong("`" + access.buffer + "` by its own axes");
      const Buffer& buffer = *find_buffer(program, access.buffer);
      const bool fits = &buffer == &weight || buffer.dims == x.dims;
      if (!fits) return wrong("`" + buffer.name + "` to have the dimensions of `" + x.name + "`");
    }
  }
  const auto named = [](const Dim& dim) { return std::holds_alternative<std::string>(dim); };
  const bool is_row = weight.dims.size() == 1 && named(weight.dims[0]) &&
                      std::ranges::find(x.dims, weight.dims[0]) != x.dims.end() &&
                      std::ranges::all_of(x.dims, named);
  if (!is_row) return wrong("`" + weight.name + "` to have one axis of `" + x.name + "`'s");
  const std::string& along = std::get<std::string>(weight.dims[0]);
  if (std::ranges::find(nest.whole, along) != nest.whole.end()) return Ok{};
  return wrong("axis `" + along + "` whole");
}

// Opaque dimensions correspond by position: an operand has those of the target, or none.
Checked<Ok> check_opaque(const Program& program, const Nest& nest, const Stmt& stmt) {
  const auto opaque = [&](const Access& access) {
    std::vector<std::int64_t> extents;
    for (const Dim& dim : find_buffer(program, access.buffer)->dims) {
      if (const auto* const extent = std::get_if<std::int64_t>(&dim)) extents.push_back(*extent);
    }
    return extents;
  };
  for (const Access& operand : stmt.operands) {
    const std::vector<std::int64_t> extents = opaque(operand);
    const bool broadcast = extents.empty() && !is_leaf(stmt.leaf, Leaf::Copy);
    if (broadcast || extents == opaque(stmt.targets[0])) continue;
    return make_diag(DiagCode::P062, {{"nest", nest.name},
                                      {"leaf", stmt.leaf},
                                      {"buffer", operand.buffer},
                                      {"target", stmt.targets[0].buffer}});
  }
  return Ok{};
}

Checked<Ok> check_ragged_target(const Program& program, const Nest& nest, const Stmt& stmt) {
  for (const Access& target : stmt.targets) {
    const Axis* const ragged = find_ragged_axis(program, *find_buffer(program, target.buffer));
    if (ragged == nullptr) continue;
    const bool known = std::ranges::any_of(stmt.operands, [&](const Access& operand) {
      return find_ragged_axis(program, *find_buffer(program, operand.buffer)) == ragged;
    });
    if (known) continue;
    return make_diag(DiagCode::P057, {{"nest", nest.name},
                                      {"target", target.buffer},
                                      {"axis", ragged->name},
                                      {"leaf", stmt.leaf}});
  }
  return Ok{};
}

}  // namespace

Checked<Ok> check_routing(const Program& program) {
  for (const Axis* const axis : axes_of(program)) {
    const Axis* const owner = axis->of.empty() ? nullptr : find_axis(program, axis->of);
    if (owner == nullptr || owner->of.empty()) continue;
    return make_diag(
        DiagCode::P056,
        {{"where", "program `" + program.name + "`"}, {"axis", axis->name}, {"of", axis->of}});
  }
  for (const Buffer* const buffer : buffers_of(program)) {
    HP_REQUIRE_OK(check_ragged_buffer(program, *buffer));
  }
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      const LeafContract* const contract = find_leaf_contract(stmt.leaf);
      if (contract == nullptr) continue;
      if (contract->is_routed()) {
        HP_REQUIRE_OK(check_routed_leaf(program, nest, stmt));
      }
      if (contract->pointwise || contract->leaf == Leaf::Copy) {
        HP_REQUIRE_OK(check_opaque(program, nest, stmt));
      }
      if (contract->leaf == Leaf::LimitChoices) HP_REQUIRE_OK(check_limit(program, nest, stmt));
      if (contract->leaf == Leaf::AddRmsNorm) HP_REQUIRE_OK(check_norm(program, nest, stmt));
      if (contract->leaf == Leaf::TopK) HP_REQUIRE_OK(check_topk(program, nest, stmt));
      if (!contract->moves) HP_REQUIRE_OK(check_ragged_target(program, nest, stmt));
    }
  }
  return Ok{};
}

}  // namespace harpe
