#include "schedule/primitives/shard.h"

#include <algorithm>

#include "ir/text.h"

namespace harpe {

std::string find_axis_in_home(const NormalForm& form, std::string_view buffer,
                              const MeshRef& axes) {
  const Place* place = find_place(form, buffer);
  if (place == nullptr) return "";
  for (const std::string& axis : axes) {
    const auto uses = [&](const auto& part) { return contains(part.axes, axis); };
    if (std::ranges::any_of(place->at, uses) || std::ranges::any_of(place->partial, uses)) {
      return axis;
    }
  }
  return "";
}

Place& place_of(ScheduleState& state, const std::string& buffer) {
  std::vector<Place>& places = state.form.places;
  auto at = places.begin();
  for (const Buffer* earlier : buffers_of(state.program)) {
    if (at != places.end() && at->buffer == buffer) return *at;
    if (earlier->name == buffer) break;
    if (at != places.end() && at->buffer == earlier->name) ++at;
  }
  return *places.insert(at, Place{buffer, {}, {}});
}

Checked<ShardFacts> check(const ScheduleState& state, const Shard& step) {
  HP_TRY(const Buffer* buffer, require_buffer(state, step.buffer));
  HP_TRY(const DigitInfo digit, require_digit(state, step.digit));
  if (!contains(axis_names(*buffer), digit.axis)) {
    return make_diag(DiagCode::S301, {{"digit", digit.name},
                                      {"axis", digit.axis},
                                      {"buffer", step.buffer},
                                      {"axes", quote_list(axis_names(*buffer))}});
  }
  HP_TRY(const std::int64_t ranks, require_mesh_axes(state, step.axes));
  if (digit.blocks() != ranks) {
    return make_diag(DiagCode::S302, {{"digit", digit.name},
                                      {"extent", digit.blocks()},
                                      {"axes", print_mesh_ref(step.axes)},
                                      {"ranks", ranks}});
  }
  if (const std::string used = find_axis_in_home(state.form, step.buffer, step.axes);
      !used.empty()) {
    return make_diag(DiagCode::S303, {{"buffer", step.buffer}, {"axis", used}});
  }
  const Place* place = find_place(state.form, step.buffer);
  if (place != nullptr) {
    const auto placed = std::ranges::find(place->at, step.digit, &Placement::digit);
    if (placed != place->at.end()) {
      return make_diag(
          DiagCode::S304,
          {{"digit", step.digit}, {"buffer", step.buffer}, {"axes", print_mesh_ref(placed->axes)}});
    }
  }
  return ShardFacts{step.buffer, Placement{step.digit, step.axes}};
}

ScheduleState apply(ScheduleState state, const ShardFacts& facts) {
  place_of(state, facts.buffer).at.push_back(facts.placement);
  return state;
}

}  // namespace harpe
