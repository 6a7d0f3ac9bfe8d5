#include "schedule/primitives/replicate.h"

#include "schedule/primitives/parallelize.h"

namespace harpe {

Checked<ReplicateFacts> check(const ScheduleState& state, const Replicate& step) {
  HP_TRY(const std::size_t nest, require_nest(state, step.nest));
  HP_TRY(const std::int64_t copies, require_mesh_axes(state, step.axes));
  for (const std::string& axis : step.axes) {
    if (const Par* par = find_par_on(state.form.nests[nest], axis)) {
      return make_diag(DiagCode::S221,
                       {{"axis", axis}, {"digit", par->digit}, {"nest", step.nest}});
    }
  }
  return ReplicateFacts{nest, copies};
}

ScheduleState apply(ScheduleState state, const ReplicateFacts&) { return state; }

}  // namespace harpe
