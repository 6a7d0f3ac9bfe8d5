#include "schedule/primitives/drain.h"

#include <algorithm>

#include "offers/offers.h"
#include "schedule/primitives/parallelize.h"
#include "schedule/primitives/shard.h"

namespace harpe {
namespace {

Checked<Ok> check_relay(const ScheduleState& state, const NewMoves& added, const Move& move) {
  const For* loop = loop_around(state, added);
  if (const auto fault = find_rotation_fault(state, added.nest, loop, move)) {
    return make_diag(DiagCode::S412, {{"move", describe_move(move)}, {"reason", *fault}});
  }
  const NestForm& form = state.form.nests[added.nest];
  const std::vector<std::string> own = access_digits(state, added.nest, move.buffer, false);
  for (const std::string& axis : move.over) {
    const Par* par = find_par_on(form, axis);
    if (par == nullptr || contains(own, par->digit)) {
      const std::string found =
          par == nullptr ? "no par runs over it"
                         : "`par " + par->digit + "` is a digit of `" + move.buffer + "`";
      return make_diag(DiagCode::S413,
                       {{"move", describe_move(move)}, {"axis", axis}, {"found", found}});
    }
    if (find_axis_in_home(state.form, move.buffer, {axis}).empty()) {
      return make_diag(DiagCode::S414,
                       {{"move", describe_move(move)}, {"axis", axis}, {"buffer", move.buffer}});
    }
  }
  return Ok{};
}

// Whether all leaves of the nest, and their chosen kernel, can store to other ranks.
bool writes_in_place(const ScheduleState& state, std::size_t nest) {
  if (const auto& chosen = state.form.nests[nest].leaf.kernel) {
    const KernelOffer* const kernel = find_offer(*chosen);
    if (kernel == nullptr || !kernel->remote_targets) return false;
  }
  return std::ranges::all_of(nest_of(state, nest).stmts, [](const Stmt& stmt) {
    return is_offered(stmt.leaf, &KernelOffer::remote_targets);
  });
}

}  // namespace

Checked<DrainFacts> check(const ScheduleState& state, const Drain& step) {
  Move pattern;
  pattern.kind = MoveKind::Drain;
  pattern.over = step.over;
  pattern.how = step.how;
  pattern.by = step.by;
  HP_TRY(NewMoves added, prepare_moves(state, step.nest, step.buffers, step.at, pattern));
  for (const Move& move : added.moves) {
    if (!is_accessed(nest_of(state, added.nest), move.buffer, false)) {
      return make_diag(DiagCode::S411, {{"nest", step.nest}, {"buffer", move.buffer}});
    }
    if (step.how == How::Inline && !writes_in_place(state, added.nest)) {
      return make_diag(DiagCode::S415, {{"buffer", move.buffer}});
    }
    if (step.how == How::Relay) HP_REQUIRE_OK(check_relay(state, added, move));
  }
  return DrainFacts{std::move(added)};
}

ScheduleState apply(ScheduleState state, const DrainFacts& facts) {
  insert_moves(state, facts.added);
  return state;
}

}  // namespace harpe
