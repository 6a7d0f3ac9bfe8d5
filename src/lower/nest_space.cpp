#include "lower/nest_space.h"

#include <algorithm>
#include <set>

#include "ir/mask_contract.h"
#include "ir/text.h"

namespace harpe {
namespace {

constexpr std::int64_t kMaxIterationBlocks = std::int64_t{1} << 26;

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

MeshRef names_of(const Blocks& blocks, const std::vector<int>& axes) {
  MeshRef names;
  for (const int axis : axes) {
    names.push_back(blocks.mesh().axes[static_cast<std::size_t>(axis)].name);
  }
  return names;
}

namespace {

class Resolver {
 public:
  Resolver(const Program& program, const Blocks& blocks, NestSpace& space)
      : program_(program), blocks_(blocks), space_(space), nest_(*space.program_nest) {}

  Checked<Ok> resolve() {
    HP_REQUIRE_OK(check_routes());
    space_.digits = iteration_digits(program_, blocks_, nest_);
    std::int64_t blocks = 1;
    for (const int digit : space_.digits) {
      blocks *= blocks_.digits()[static_cast<std::size_t>(digit)].extent;
      if (blocks > kMaxIterationBlocks) {
        return make_diag(DiagCode::F117, {{"nest", nest_.name}, {"limit", kMaxIterationBlocks}});
      }
    }
    space_.par.resize(blocks_.digits().size());
    space_.loop_of.assign(blocks_.digits().size(), -1);
    for (const NestItem& item : space_.form->items) {
      if (const auto* par = std::get_if<Par>(&item)) HP_REQUIRE_OK(add_par(*par));
      if (const auto* loop = std::get_if<For>(&item)) HP_REQUIRE_OK(add_loop(*loop));
      if (const auto* move = std::get_if<Move>(&item)) HP_REQUIRE_OK(add_move(*move));
    }
    space_.scheduled_loops = space_.loops.size();
    HP_REQUIRE_OK(add_kernel_loops());
    for (const Stmt& stmt : nest_.stmts) HP_REQUIRE_OK(add_stmt(stmt));
    return check_moves_used();
  }

 private:
  [[nodiscard]] Diag not_built(const std::string& problem) const {
    return make_diag(DiagCode::F306, {{"nest", nest_.name}, {"problem", problem}});
  }

  // Checks that there is one route, from (token, choice) to (expert, slot), and that targets use
  // their own axes.
  [[nodiscard]] Checked<Ok> check_routes() const {
    const Route* found = nullptr;
    for (const Stmt& stmt : nest_.stmts) {
      for (const Access& target : stmt.targets) {
        if (target.renames.empty()) continue;
        return not_built("writes `" + target.buffer + "` by other axes than its own");
      }
      for (const Access& operand : stmt.operands) {
        for (const Rename& rename : operand.renames) {
          if (rename.member.empty()) continue;
          const Route* const route = find_route(program_, rename.source);
          if (found != nullptr && found != route) {
            return not_built("goes through routes `" + found->name + "` and `" + route->name + "`");
          }
          found = route;
        }
      }
    }
    if (found == nullptr) return Ok{};
    if (found->slots.size() != 2 || found->choices.size() != 2) {
      return not_built("goes through route `" + found->name +
                       "`, which does not relate (expert, slot) to (token, choice)");
    }
    const bool picks =
        contains(nest_.over, found->choices[0]) && contains(nest_.over, found->choices[1]);
    if (picks && contains(nest_.over, found->slots[0])) {
      return not_built("runs over the choices of route `" + found->name + "` and its experts");
    }
    return Ok{};
  }

  [[nodiscard]] Diag unknown(std::string_view what, const std::string& name) const {
    return make_diag(DiagCode::F101,
                     {{"what", what}, {"name", name}, {"form", nest_.name}, {"hint", ""}});
  }

  Checked<int> bind_digit(const std::string& name) {
    const int digit = blocks_.find_digit(name);
    if (digit >= 0 && contains(nest_.whole, axis_of(digit))) {
      return make_diag(DiagCode::F203,
                       {{"digit", name}, {"nest", nest_.name}, {"axis", axis_of(digit)}});
    }
    if (digit < 0 || std::ranges::find(space_.digits, digit) == space_.digits.end()) {
      return make_diag(DiagCode::F202, {{"digit", name}, {"nest", nest_.name}});
    }
    if (!bound_.insert(digit).second) {
      return make_diag(DiagCode::F201, {{"nest", nest_.name}, {"digit", name}});
    }
    return digit;
  }

  [[nodiscard]] const std::string& axis_of(int digit) const {
    const int axis = blocks_.digits()[static_cast<std::size_t>(digit)].axis;
    return blocks_.axes()[static_cast<std::size_t>(axis)].name;
  }

  Checked<std::vector<int>> mesh_axes(const MeshRef& names) const {
    std::vector<int> axes;
    for (const std::string& name : names) {
      const int axis = harpe::find_axis(blocks_.mesh(), name);
      if (axis < 0) return unknown("mesh axis", name);
      axes.push_back(axis);
    }
    return axes;
  }

  Checked<Ok> check_seq(int digit, std::string_view how) const {
    if (!contains(nest_.seq, axis_of(digit))) return Ok{};
    return make_diag(DiagCode::F205,
                     {{"axis", axis_of(digit)},
                      {"nest", nest_.name},
                      {"digit", blocks_.digits()[static_cast<std::size_t>(digit)].name},
                      {"how", how}});
  }

  Checked<Ok> add_par(const Par& par) {
    HP_TRY(const int digit, bind_digit(par.digit));
    HP_TRY(std::vector<int> axes, mesh_axes(par.axes));
    HP_REQUIRE_OK(check_seq(digit, "par"));
    const std::int64_t size = blocks_.extent(axes);
    const std::int32_t extent = blocks_.digits()[static_cast<std::size_t>(digit)].extent;
    if (extent != size) {
      return make_diag(DiagCode::F111, {{"digit", par.digit},
                                        {"extent", extent},
                                        {"axes", print_mesh_ref(par.axes)},
                                        {"size", size}});
    }
    for (const int axis : axes) {
      if (!used_axes_.insert(axis).second) {
        return make_diag(DiagCode::F204,
                         {{"nest", nest_.name},
                          {"axis", blocks_.mesh().axes[static_cast<std::size_t>(axis)].name}});
      }
    }
    space_.par[static_cast<std::size_t>(digit)] = std::move(axes);
    return Ok{};
  }

  Checked<Ok> add_loop(const For& loop) {
    HP_TRY(const int digit, bind_digit(loop.digit));
    NestLoop resolved{.digit = digit,
                      .extent = blocks_.digits()[static_cast<std::size_t>(digit)].extent,
                      .skew_axes = {},
                      .skew_loops = {},
                      .offset = loop.offset,
                      .reverse = loop.reverse};
    for (const std::string& term : loop.skew) {
      if (const int axis = harpe::find_axis(blocks_.mesh(), term); axis >= 0) {
        resolved.skew_axes.push_back(axis);
        continue;
      }
      const int outer = blocks_.find_digit(term);
      const int at = outer < 0 ? -1 : space_.loop_of[static_cast<std::size_t>(outer)];
      if (at < 0) return make_diag(DiagCode::F206, {{"digit", loop.digit}, {"term", term}});
      resolved.skew_loops.push_back(at);
    }
    if (!loop.skew.empty()) HP_REQUIRE_OK(check_seq(digit, "skewed"));
    space_.loop_of[static_cast<std::size_t>(digit)] = static_cast<int>(space_.loops.size());
    space_.loops.push_back(std::move(resolved));
    return Ok{};
  }

  [[nodiscard]] std::string place_of(int position) const {
    if (position == 0) return "above every loop";
    const int digit = space_.loops[static_cast<std::size_t>(position) - 1].digit;
    return "inside loop `" + blocks_.digits()[static_cast<std::size_t>(digit)].name + "`";
  }

  // Moves of one kind and buffer in a nest must cross disjoint mesh axes (commir.md D3).
  [[nodiscard]] Checked<Ok> check_crossed_once(const Move& move) const {
    const auto refuse = [&](const std::string& axis, const std::string& first) {
      return make_diag(DiagCode::F225, {{"move", print(move.kind)},
                                        {"buffer", move.buffer},
                                        {"axes", print_mesh_ref(move.over)},
                                        {"place", place_of(static_cast<int>(space_.loops.size()))},
                                        {"axis", axis},
                                        {"first", first}});
    };
    for (const std::string& axis : move.over) {
      if (std::ranges::count(move.over, axis) > 1) return refuse(axis, "it names the axis twice");
      for (const NestMove& other : space_.moves) {
        const Move& before = *other.spec;
        if (before.kind != move.kind || before.buffer != move.buffer) continue;
        if (!contains(before.over, axis)) continue;
        return refuse(axis, "a " + std::string(print(move.kind)) + " over " +
                                print_mesh_ref(before.over) + " " + place_of(other.position) +
                                " does so");
      }
    }
    return Ok{};
  }

  [[nodiscard]] static Checked<Ok> check_wire(const Move& move, DType dtype) {
    if (!move.wire || (is_floating(*move.wire) && is_floating(dtype))) return Ok{};
    return make_diag(DiagCode::F226, {{"move", print(move.kind)},
                                      {"buffer", move.buffer},
                                      {"axes", print_mesh_ref(move.over)},
                                      {"dtype", print(dtype)},
                                      {"wire", print(*move.wire)}});
  }

  Checked<Ok> add_move(const Move& move) {
    const int buffer = blocks_.find_buffer(move.buffer);
    if (buffer < 0) return unknown("buffer", move.buffer);
    HP_TRY(std::vector<int> over, mesh_axes(move.over));
    HP_REQUIRE_OK(check_crossed_once(move));
    HP_REQUIRE_OK(check_wire(move, blocks_.buffers()[static_cast<std::size_t>(buffer)].dtype));
    if (move.slots() < 1) {
      return make_diag(
          DiagCode::F222,
          {{"move", print(move.kind)}, {"buffer", move.buffer}, {"depth", move.slots()}});
    }
    int chunk = -1;
    if (move.chunk) {
      chunk = blocks_.find_digit(*move.chunk);
      const auto& digits = blocks_.buffers()[static_cast<std::size_t>(buffer)].digits;
      const bool routed = std::ranges::any_of(nest_.stmts, [&](const Stmt& stmt) {
        return std::ranges::any_of(stmt.operands, [&](const Access& access) {
          return access.buffer == move.buffer &&
                 std::ranges::any_of(access.renames,
                                     [](const Rename& rename) { return !rename.member.empty(); });
        });
      });
      const bool iterated = std::ranges::find(space_.digits, chunk) != space_.digits.end();
      if (std::ranges::find(digits, chunk) == digits.end() && !(routed && iterated)) {
        return make_diag(DiagCode::F218, {{"digit", *move.chunk}, {"buffer", move.buffer}});
      }
    }
    space_.moves.push_back({.spec = &move,
                            .buffer = buffer,
                            .over = std::move(over),
                            .position = static_cast<int>(space_.loops.size()),
                            .chunk = chunk});
    return Ok{};
  }

  // The leaf's `order` and `chunk` digits are loops inside one kernel; they launch nothing.
  Checked<Ok> add_kernel_loops() {
    const LeafChoice& leaf = space_.form->leaf;
    if (!leaf.chunk) return Ok{};
    if (leaf.order && leaf.order->function == "skew" && !leaf.order->args.empty()) {
      For visit;
      for (std::size_t i = 0; i < leaf.order->args.size(); ++i) {
        const auto* name = std::get_if<Name>(&leaf.order->args[i]);
        if (name == nullptr) return unknown("digit", print(leaf.order->args[i]));
        if (i == 0) {
          visit.digit = name->text;
        } else {
          visit.skew.push_back(name->text);
        }
      }
      HP_REQUIRE_OK(add_loop(visit));
    }
    return add_loop(For{.digit = *leaf.chunk, .skew = {}, .offset = 0, .reverse = false});
  }

  Checked<Ok> add_stmt(const Stmt& stmt) {
    NestStmt resolved{.stmt = &stmt, .operands = {}, .targets = {}, .mask = {}};
    for (const Access& access : reads_of(stmt)) {
      HP_TRY(OperandMap map, map_operand(access));
      resolved.operands.push_back(std::move(map));
    }
    for (const Access& target : stmt.targets) {
      HP_REQUIRE_OK(check_target(stmt, target));
      resolved.targets.push_back(blocks_.find_buffer(target.buffer));
    }
    resolved.mask = resolve_masks(blocks_, stmt);
    for (const Mask& mask : stmt.masks) {
      const MaskCall rule = read_mask(mask);
      for (const std::string& axis : {rule.queries, rule.keys}) {
        if (axis.empty() || runs_over(axis)) continue;
        return not_built("masks by `" + axis + "`, which it does not run over");
      }
    }
    space_.stmts.push_back(std::move(resolved));
    return Ok{};
  }

  [[nodiscard]] bool runs_over(const std::string& axis) const {
    return std::ranges::any_of(space_.digits, [&](int digit) { return axis_of(digit) == axis; });
  }

  // commir.md 8: through a route, a digit follows the digit that a slab layout ties it to. Expert
  // digits follow the iteration's own if the nest runs over choices. All other digits depend on
  // run-time data and take all values.
  void follow_route(const Route& route, const Rename& rename, OperandMap& map) const {
    const std::string& axis_name = rename.axis;
    const int axis = blocks_.find_axis(axis_name);
    const auto& buffer = blocks_.buffers()[static_cast<std::size_t>(map.buffer)];
    // Otherwise the two axes may have different blocks.
    const bool direct = rename.member == axis_name;
    const bool expert =
        direct && axis_name == route.slots.front() && !contains(nest_.over, axis_name);
    for (std::size_t i = 0; i < map.follows.size(); ++i) {
      const int digit = buffer.digits[i];
      if (blocks_.digits()[static_cast<std::size_t>(digit)].axis != axis) continue;
      map.follows[i] = expert ? digit : -1;
      if (!direct) continue;
      for (const std::string& slot : route.slots) {
        for (const auto& [own, source] :
             blocks_.axes()[static_cast<std::size_t>(blocks_.find_axis(slot))].slabs) {
          if (source == digit) map.follows[i] = own;
          if (own == digit) map.follows[i] = source;
        }
      }
    }
  }

  Checked<OperandMap> map_operand(const Access& access) const {
    OperandMap map{.buffer = blocks_.find_buffer(access.buffer), .follows = {}};
    const BufferTable& buffer = blocks_.buffers()[static_cast<std::size_t>(map.buffer)];
    if (!buffer.partial_axes.empty()) {
      return make_diag(DiagCode::F243,
                       {{"nest", nest_.name},
                        {"buffer", buffer.name},
                        {"axes", print_mesh_ref(names_of(blocks_, buffer.partial_axes))}});
    }
    map.follows = buffer.digits;
    for (const Rename& rename : access.renames) {
      if (const Route* route = find_route(program_, rename.source)) {
        follow_route(*route, rename, map);
        continue;
      }
      const AxisTable& from =
          blocks_.axes()[static_cast<std::size_t>(blocks_.find_axis(rename.axis))];
      if (contains(nest_.whole, rename.source)) {  // the leaf reads the whole axis
        for (int& digit : map.follows) {
          if (std::ranges::find(from.digits, digit) != from.digits.end()) digit = -1;
        }
        continue;
      }
      const AxisTable& to =
          blocks_.axes()[static_cast<std::size_t>(blocks_.find_axis(rename.source))];
      const auto same = [&](int a, int b) {
        return blocks_.digits()[static_cast<std::size_t>(a)].extent ==
               blocks_.digits()[static_cast<std::size_t>(b)].extent;
      };
      if (!std::ranges::equal(from.digits, to.digits, same) || from.starts != to.starts) {
        return make_diag(
            DiagCode::F221,
            {{"buffer", access.buffer}, {"axis", rename.axis}, {"source", rename.source}});
      }
      for (int& digit : map.follows) {
        const auto at = std::ranges::find(from.digits, digit);
        if (at != from.digits.end()) {
          digit = to.digits[static_cast<std::size_t>(at - from.digits.begin())];
        }
      }
    }
    for (int& digit : map.follows) {
      if (std::ranges::find(space_.digits, digit) == space_.digits.end()) digit = -1;
    }
    return map;
  }

  Checked<Ok> check_target(const Stmt& stmt, const Access& target) const {
    const Buffer& buffer = *harpe::find_buffer(program_, target.buffer);
    if (stmt.monoid != Monoid::Store) return Ok{};
    const std::vector<std::string> axes = axis_names(buffer);
    for (const std::string& axis : nest_.over) {
      if (contains(axes, axis) || contains(nest_.whole, axis)) continue;
      return make_diag(DiagCode::F215,
                       {{"buffer", target.buffer}, {"nest", nest_.name}, {"axis", axis}});
    }
    // Over the choices of a route, the nest also runs over the experts. It must run over all at
    // once, or each would store the whole block.
    for (const int digit : space_.digits) {
      const auto d = static_cast<std::size_t>(digit);
      const bool split = !space_.par[d].empty() || space_.loop_of[d] >= 0;
      if (!split || blocks_.digits()[d].extent == 1 || contains(axes, axis_of(digit))) continue;
      return make_diag(DiagCode::F215,
                       {{"buffer", target.buffer}, {"nest", nest_.name}, {"axis", axis_of(digit)}});
    }
    return Ok{};
  }

  Checked<Ok> check_moves_used() const {
    for (const NestMove& move : space_.moves) {
      const bool stage = move.spec->kind == MoveKind::Stage;
      const bool used = std::ranges::any_of(space_.stmts, [&](const NestStmt& stmt) {
        return stage ? std::ranges::find(stmt.operands, move.buffer, &OperandMap::buffer) !=
                           stmt.operands.end()
                     : std::ranges::find(stmt.targets, move.buffer) != stmt.targets.end();
      });
      if (!used) {
        return make_diag(DiagCode::F220, {{"nest", nest_.name},
                                          {"move", print(move.spec->kind)},
                                          {"buffer", move.spec->buffer},
                                          {"role", stage ? "read" : "write"}});
      }
    }
    return Ok{};
  }

  const Program& program_;
  const Blocks& blocks_;
  NestSpace& space_;
  const Nest& nest_;
  std::set<int> bound_;
  std::set<int> used_axes_;
};

}  // namespace

Checked<NestSpace> NestSpace::make(const Program& program, const Blocks& blocks, int nest,
                                   const NestForm& form) {
  NestSpace space;
  space.nest = nest;
  space.program_nest = &program.nests[static_cast<std::size_t>(nest)];
  space.form = &form;
  HP_REQUIRE_OK(Resolver(program, blocks, space).resolve());
  return space;
}

std::int32_t NestSpace::loop_value(const Blocks& blocks, std::size_t loop, Time t,
                                   RankId rank) const {
  const NestLoop& l = loops[loop];
  std::int64_t value = l.reverse ? l.extent - 1 - t[loop] : t[loop];
  value += blocks.coordinate(rank, l.skew_axes) + l.offset;
  for (const int outer : l.skew_loops) {
    value += loop_value(blocks, static_cast<std::size_t>(outer), t, rank);
  }
  return static_cast<std::int32_t>((value % l.extent + l.extent) % l.extent);
}

std::int32_t NestSpace::value(const Blocks& blocks, int digit, Time t, RankId rank) const {
  const auto d = static_cast<std::size_t>(digit);
  if (blocks.digits()[d].extent == 1) return kAll;
  if (!par[d].empty()) return static_cast<std::int32_t>(blocks.coordinate(rank, par[d]));
  const int loop = loop_of[d];
  if (loop >= 0 && static_cast<std::size_t>(loop) < t.size()) {
    return loop_value(blocks, static_cast<std::size_t>(loop), t, rank);
  }
  return kAll;
}

}  // namespace harpe
