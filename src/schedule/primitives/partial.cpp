#include "schedule/primitives/partial.h"

#include <algorithm>

#include "schedule/primitives/shard.h"

namespace harpe {
namespace {

bool is_written_under(const Program& program, std::string_view buffer, Monoid monoid) {
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      const bool writes =
          std::ranges::find(stmt.targets, buffer, &Access::buffer) != stmt.targets.end();
      if (writes && stmt.monoid == monoid) return true;
    }
  }
  return false;
}

}  // namespace

Checked<PartialFacts> check(const ScheduleState& state, const Partial& step) {
  HP_TRY(const Buffer* buffer, require_buffer(state, step.buffer));
  if (buffer->role != Role::Out && buffer->role != Role::Temp) {
    return make_diag(DiagCode::S311, {{"buffer", step.buffer}, {"role", print(buffer->role)}});
  }
  if (!is_written_under(state.program, step.buffer, step.monoid)) {
    return make_diag(DiagCode::S312, {{"buffer", step.buffer}, {"monoid", print(step.monoid)}});
  }
  HP_REQUIRE_OK(require_mesh_axes(state, step.axes));
  if (const std::string used = find_axis_in_home(state.form, step.buffer, step.axes);
      !used.empty()) {
    return make_diag(DiagCode::S313, {{"buffer", step.buffer}, {"axis", used}});
  }
  return PartialFacts{step.buffer, PartialHome{step.monoid, step.axes}};
}

ScheduleState apply(ScheduleState state, const PartialFacts& facts) {
  place_of(state, facts.buffer).partial.push_back(facts.home);
  return state;
}

}  // namespace harpe
