#include "schedule/primitives/stage.h"

#include "offers/offers.h"

namespace harpe {
namespace {

Checked<Ok> check_inline(const ScheduleState& state, std::size_t nest, const Move& move) {
  if (move.initiator() == Initiator::Src) {
    return make_diag(DiagCode::S404, {{"buffer", move.buffer}});
  }
  for (const Stmt& stmt : nest_of(state, nest).stmts) {
    if (!is_offered(stmt.leaf, &KernelOffer::remote_operands)) {
      return make_diag(DiagCode::S403,
                       {{"what", "leaf `" + stmt.leaf + "`"}, {"buffer", move.buffer}});
    }
  }
  if (const auto& chosen = state.form.nests[nest].leaf.kernel) {
    const KernelOffer* const kernel = find_offer(*chosen);
    if (kernel == nullptr || !kernel->remote_operands) {
      return make_diag(DiagCode::S403,
                       {{"what", "kernel `" + *chosen + "`"}, {"buffer", move.buffer}});
    }
  }
  return Ok{};
}

}  // namespace

Checked<StageFacts> check(const ScheduleState& state, const Stage& step) {
  Move pattern;
  pattern.kind = MoveKind::Stage;
  pattern.over = step.over;
  pattern.how = step.how;
  pattern.by = step.by;
  HP_TRY(NewMoves added, prepare_moves(state, step.nest, step.buffers, step.at, pattern));
  const For* loop = loop_around(state, added);
  for (const Move& move : added.moves) {
    if (!is_accessed(nest_of(state, added.nest), move.buffer, true)) {
      return make_diag(DiagCode::S401, {{"nest", step.nest}, {"buffer", move.buffer}});
    }
    if (step.how == How::Relay) {
      if (const auto fault = find_rotation_fault(state, added.nest, loop, move)) {
        return make_diag(DiagCode::S402, {{"move", describe_move(move)}, {"reason", *fault}});
      }
    }
    if (step.how == How::OneShot) return make_diag(DiagCode::S405, {{"buffer", move.buffer}});
    if (step.how == How::Inline) HP_REQUIRE_OK(check_inline(state, added.nest, move));
  }
  return StageFacts{std::move(added)};
}

ScheduleState apply(ScheduleState state, const StageFacts& facts) {
  insert_moves(state, facts.added);
  return state;
}

}  // namespace harpe
