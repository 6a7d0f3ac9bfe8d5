#include "schedule/primitives/parallelize.h"

#include "ir/text.h"
#include "schedule/moves.h"

namespace harpe {

const Par* find_par_on(const NestForm& nest, std::string_view axis) {
  for (const NestItem& item : nest.items) {
    const auto* par = std::get_if<Par>(&item);
    if (par != nullptr && contains(par->axes, axis)) return par;
  }
  return nullptr;
}

Checked<ParallelizeFacts> check(const ScheduleState& state, const Parallelize& step) {
  HP_TRY(const std::size_t nest, require_nest(state, step.nest));
  HP_TRY(const DigitInfo digit, require_bindable(state, nest, step.digit));
  if (is_sequential(state, nest, digit.axis)) {
    return make_diag(DiagCode::S201,
                     {{"digit", digit.name}, {"axis", digit.axis}, {"nest", step.nest}});
  }
  HP_TRY(const std::int64_t ranks, require_mesh_axes(state, step.axes));
  if (digit.blocks() != ranks) {
    return make_diag(DiagCode::S202, {{"digit", digit.name},
                                      {"extent", digit.blocks()},
                                      {"axes", print_mesh_ref(step.axes)},
                                      {"ranks", ranks}});
  }
  const NestForm& form = state.form.nests[nest];
  for (const std::string& axis : step.axes) {
    if (const Par* par = find_par_on(form, axis)) {
      return make_diag(DiagCode::S203,
                       {{"axis", axis}, {"digit", par->digit}, {"nest", step.nest}});
    }
  }
  std::size_t position = 0;
  while (position < form.items.size() && std::holds_alternative<Par>(form.items[position])) {
    ++position;
  }
  NestForm changed = form;
  changed.items.emplace_back(Par{step.digit, step.axes});
  if (const Move* move = find_pinned_move(changed)) {
    return make_diag(DiagCode::S204, {{"move", describe_move(*move)}, {"digit", digit.name}});
  }
  return ParallelizeFacts{nest, position, Par{step.digit, step.axes}};
}

ScheduleState apply(ScheduleState state, const ParallelizeFacts& facts) {
  std::vector<NestItem>& items = state.form.nests[facts.nest].items;
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(facts.position), facts.par);
  return state;
}

}  // namespace harpe
