#include "schedule/primitives/signal.h"

#include "schedule/transports.h"

namespace harpe {

Checked<SignalByFacts> check(const ScheduleState& state, const SignalBy& step) {
  HP_TRY(const FoundMoves moves,
         require_moves(state, {step.nest, step.buffers, step.over, step.move}));
  if (!step.kind && !step.fence) return make_diag(DiagCode::S461);
  bool changes = false;
  for (std::size_t i = 0; i < moves.items.size(); ++i) {
    const Move& move = move_at(state, moves, i);
    const Via via = move.transport();
    if (step.kind && !can_signal(via, *step.kind)) {
      return make_diag(DiagCode::S462, {{"move", describe_move(move)},
                                        {"via", print(via)},
                                        {"signal", print(*step.kind)},
                                        {"signals", describe_signals(via)}});
    }
    if (step.fence && !takes_fence(via)) {
      return make_diag(
          DiagCode::S463,
          {{"move", describe_move(move)}, {"via", print(via)}, {"fence", print(*step.fence)}});
    }
    changes = changes || (step.kind && move.signal != step.kind) ||
              (step.fence && move.fence != step.fence);
  }
  if (!changes) {
    const std::string value =
        step.kind ? std::string(print(*step.kind)) : std::string(print(*step.fence));
    return make_diag(DiagCode::S008,
                     {{"what", "the signal of " + describe_move(move_at(state, moves, 0))},
                      {"value", "`" + value + "`"}});
  }
  return SignalByFacts{moves, step.kind, step.fence};
}

ScheduleState apply(ScheduleState state, const SignalByFacts& facts) {
  for (std::size_t i = 0; i < facts.moves.items.size(); ++i) {
    Move& move = move_at(state, facts.moves, i);
    if (facts.kind) move.signal = facts.kind;
    if (facts.fence) move.fence = facts.fence;
  }
  return state;
}

}  // namespace harpe
