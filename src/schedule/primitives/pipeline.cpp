#include "schedule/primitives/pipeline.h"

namespace harpe {

Checked<PipelineFacts> check(const ScheduleState& state, const Pipeline& step) {
  HP_TRY(const FoundMoves moves,
         require_moves(state, {step.nest, step.buffers, step.over, step.move}));
  if (step.depth < 1 || step.depth > kMaxDepth) {
    return make_diag(DiagCode::S421, {{"depth", step.depth}, {"most", kMaxDepth}});
  }
  bool changes = false;
  for (std::size_t i = 0; i < moves.items.size(); ++i) {
    const Move& move = move_at(state, moves, i);
    if (move.how == How::Relay && step.depth < 2) {
      return make_diag(DiagCode::S422, {{"move", describe_move(move)}, {"depth", step.depth}});
    }
    if (move.how == How::Inline) {
      return make_diag(DiagCode::S423, {{"move", describe_move(move)}});
    }
    changes = changes || move.depth != step.depth;
  }
  if (!changes) {
    return make_diag(DiagCode::S008,
                     {{"what", "the depth of " + describe_move(move_at(state, moves, 0))},
                      {"value", std::to_string(step.depth)}});
  }
  return PipelineFacts{moves, step.depth};
}

ScheduleState apply(ScheduleState state, const PipelineFacts& facts) {
  for (std::size_t i = 0; i < facts.moves.items.size(); ++i) {
    move_at(state, facts.moves, i).depth = facts.depth;
  }
  return state;
}

}  // namespace harpe
