#include "schedule/primitives/reverse.h"

#include "schedule/primitives/shift.h"

namespace harpe {

Checked<ReverseFacts> check(const ScheduleState& state, const Reverse& step) {
  HP_TRY(const std::size_t nest, require_nest(state, step.loop.nest));
  HP_TRY(const std::size_t item, require_loop(state, nest, step.loop.digit));
  HP_TRY(const DigitInfo digit, require_digit(state, step.loop.digit));
  if (is_sequential(state, nest, digit.axis)) {
    return make_diag(DiagCode::S241,
                     {{"digit", digit.name}, {"axis", digit.axis}, {"nest", step.loop.nest}});
  }
  For changed = std::get<For>(state.form.nests[nest].items[item]);
  changed.reverse = !changed.reverse;
  if (const std::string broken = find_broken_relay(state, nest, item, changed); !broken.empty()) {
    return make_diag(DiagCode::S242, {{"digit", digit.name}, {"reason", broken}});
  }
  return ReverseFacts{nest, item};
}

ScheduleState apply(ScheduleState state, const ReverseFacts& facts) {
  For& loop = std::get<For>(state.form.nests[facts.nest].items[facts.item]);
  loop.reverse = !loop.reverse;
  return state;
}

}  // namespace harpe
