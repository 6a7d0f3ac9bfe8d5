#include "schedule/primitives/budget.h"

namespace harpe {
namespace {

bool runs_on_sms(Via via) { return via != Via::Ce && via != Via::Proxy; }

Checked<FoundMoves> find_budgeted(const ScheduleState& state, const Budget& step) {
  if (!step.buffers && !step.over && !step.move) {
    HP_TRY(const std::size_t nest, require_nest(state, step.nest));
    return FoundMoves{nest, {}};
  }
  if (!step.buffers || !step.over) return make_diag(DiagCode::S512);
  HP_TRY(FoundMoves moves, require_moves(state, {step.nest, *step.buffers, *step.over, step.move}));
  for (std::size_t i = 0; i < moves.items.size(); ++i) {
    const Move& move = move_at(state, moves, i);
    if (!runs_on_sms(move.transport())) {
      return make_diag(DiagCode::S513,
                       {{"move", describe_move(move)}, {"via", print(move.transport())}});
    }
  }
  return moves;
}

}  // namespace

Checked<Ok> check_sm_count(std::int64_t sm) {
  if (sm >= 1 && sm <= kMaxSms) return Ok{};
  return make_diag(DiagCode::S511, {{"sm", sm}, {"most", kMaxSms}});
}

Checked<BudgetFacts> check(const ScheduleState& state, const Budget& step) {
  HP_TRY(FoundMoves moves, find_budgeted(state, step));
  HP_REQUIRE_OK(check_sm_count(step.sm));
  bool changes = moves.items.empty() && state.form.nests[moves.nest].leaf.sm != step.sm;
  for (std::size_t i = 0; i < moves.items.size(); ++i) {
    changes = changes || move_at(state, moves, i).sm != step.sm;
  }
  if (!changes) {
    return make_diag(DiagCode::S008, {{"what", "the budget in nest `" + step.nest + "`"},
                                      {"value", std::to_string(step.sm) + " SMs"}});
  }
  return BudgetFacts{std::move(moves), step.sm};
}

ScheduleState apply(ScheduleState state, const BudgetFacts& facts) {
  if (facts.moves.items.empty()) state.form.nests[facts.moves.nest].leaf.sm = facts.sm;
  for (std::size_t i = 0; i < facts.moves.items.size(); ++i) {
    move_at(state, facts.moves, i).sm = facts.sm;
  }
  return state;
}

}  // namespace harpe
