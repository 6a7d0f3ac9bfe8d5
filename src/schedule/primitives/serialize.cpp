#include "schedule/primitives/serialize.h"

namespace harpe {

Checked<SerializeFacts> check(const ScheduleState& state, const Serialize& step) {
  HP_TRY(const std::size_t nest, require_nest(state, step.nest));
  HP_TRY(const DigitInfo digit, require_bindable(state, nest, step.digit));
  if (is_sequential(state, nest, digit.axis)) {
    for (const NestItem& item : state.form.nests[nest].items) {
      const auto* loop = std::get_if<For>(&item);
      if (loop == nullptr) continue;
      HP_TRY(const DigitInfo outer, require_digit(state, loop->digit));
      if (outer.split == digit.split && outer.position > digit.position) {
        return make_diag(DiagCode::S211, {{"inner", digit.name},
                                          {"outer", outer.name},
                                          {"axis", digit.axis},
                                          {"nest", step.nest}});
      }
    }
  }
  return SerializeFacts{nest, step.digit};
}

ScheduleState apply(ScheduleState state, const SerializeFacts& facts) {
  state.form.nests[facts.nest].items.emplace_back(For{facts.digit, {}, 0, false});
  return state;
}

}  // namespace harpe
