#include "schedule/primitives/compress.h"

#include <algorithm>

namespace harpe {
namespace {

Monoid monoid_of(const Nest& nest, std::string_view buffer) {
  for (const Stmt& stmt : nest.stmts) {
    if (std::ranges::find(stmt.targets, buffer, &Access::buffer) != stmt.targets.end()) {
      return stmt.monoid;
    }
  }
  return Monoid::Store;
}

Checked<Ok> check_wire(const ScheduleState& state, std::size_t nest, const Move& move, DType wire) {
  HP_TRY(const Buffer* buffer, require_buffer(state, move.buffer));
  if (move.how == How::Inline) return make_diag(DiagCode::S474, {{"move", describe_move(move)}});
  const bool stage = move.kind == MoveKind::Stage;
  const Monoid monoid = monoid_of(nest_of(state, nest), move.buffer);
  if (!is_floating(buffer->dtype) || (!stage && monoid != Monoid::Sum)) {
    const std::string found =
        !is_floating(buffer->dtype)
            ? "`" + buffer->name + "` is " + std::string(print(buffer->dtype))
            : "it drains under `" + (monoid == Monoid::Store ? "=" : std::string(print(monoid))) +
                  "`";
    return make_diag(DiagCode::S472, {{"move", describe_move(move)}, {"found", found}});
  }
  const DType travels = stage ? buffer->dtype : state_dtype(buffer->dtype);
  if (size_in_bytes(wire) > size_in_bytes(travels)) {
    return make_diag(
        DiagCode::S473,
        {{"move", describe_move(move)}, {"wire", print(wire)}, {"travels", print(travels)}});
  }
  return Ok{};
}

}  // namespace

Checked<CompressFacts> check(const ScheduleState& state, const Compress& step) {
  HP_TRY(const FoundMoves moves,
         require_moves(state, {step.nest, step.buffers, step.over, step.move}));
  if (!is_floating(step.wire)) return make_diag(DiagCode::S471, {{"wire", print(step.wire)}});
  bool changes = false;
  for (std::size_t i = 0; i < moves.items.size(); ++i) {
    const Move& move = move_at(state, moves, i);
    HP_REQUIRE_OK(check_wire(state, moves.nest, move, step.wire));
    changes = changes || move.wire != step.wire;
  }
  if (!changes) {
    return make_diag(DiagCode::S008,
                     {{"what", "the wire of " + describe_move(move_at(state, moves, 0))},
                      {"value", "`" + std::string(print(step.wire)) + "`"}});
  }
  return CompressFacts{moves, step.wire};
}

ScheduleState apply(ScheduleState state, const CompressFacts& facts) {
  for (std::size_t i = 0; i < facts.moves.items.size(); ++i) {
    move_at(state, facts.moves, i).wire = facts.wire;
  }
  return state;
}

}  // namespace harpe
