#include "schedule/primitives/bind.h"

#include "schedule/transports.h"

namespace harpe {
namespace {

Checked<Ok> check_transport(const Move& move, Via via) {
  const std::string what = describe_move(move);
  if (move.how == How::Inline && !is_inline_capable(via)) {
    return make_diag(DiagCode::S451, {{"move", what}, {"via", print(via)}});
  }
  if (is_source_initiated(via) && move.initiator() != Initiator::Src) {
    return make_diag(DiagCode::S452, {{"move", what}, {"via", print(via)}});
  }
  if (via == Via::Nccl && move.by) {
    return make_diag(DiagCode::S453, {{"move", what}, {"by", print(*move.by)}});
  }
  if (move.signal && !can_signal(via, *move.signal)) {
    return make_diag(DiagCode::S454, {{"move", what},
                                      {"via", print(via)},
                                      {"signal", print(*move.signal)},
                                      {"signals", describe_signals(via)}});
  }
  if (move.fence && !takes_fence(via)) {
    return make_diag(DiagCode::S455,
                     {{"move", what}, {"via", print(via)}, {"fence", print(*move.fence)}});
  }
  return Ok{};
}

}  // namespace

Checked<BindFacts> check(const ScheduleState& state, const Bind& step) {
  HP_TRY(const FoundMoves moves,
         require_moves(state, {step.nest, step.buffers, step.over, step.move}));
  if (step.via == Via::Multimem) return make_diag(DiagCode::S456);
  bool changes = false;
  for (std::size_t i = 0; i < moves.items.size(); ++i) {
    const Move& move = move_at(state, moves, i);
    HP_REQUIRE_OK(check_transport(move, step.via));
    changes = changes || move.via != step.via;
  }
  if (!changes) {
    return make_diag(DiagCode::S008,
                     {{"what", "the transport of " + describe_move(move_at(state, moves, 0))},
                      {"value", "`" + std::string(print(step.via)) + "`"}});
  }
  return BindFacts{moves, step.via};
}

ScheduleState apply(ScheduleState state, const BindFacts& facts) {
  for (std::size_t i = 0; i < facts.moves.items.size(); ++i) {
    move_at(state, facts.moves, i).via = facts.via;
  }
  return state;
}

}  // namespace harpe
