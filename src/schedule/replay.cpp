#include "schedule/replay.h"

#include <algorithm>

#include "schedule/primitive.h"

namespace harpe {
namespace {

std::string print_position(std::size_t index, const Script& script) {
  return "in step " + std::to_string(index + 1) + " of schedule `" + script.name +
         "`: " + print(script.steps[index]);
}

Checked<ScheduleState> run_step(ScheduleState state, const Step& step) {
  HP_TRY(const Primitive primitive, read_step(step));
  return run(std::move(state), primitive);
}

}  // namespace

Checked<NormalForm> replay(const Program& program, const Mesh& mesh, const Script& script) {
  if (script.program != program.name) {
    return make_diag(
        DiagCode::S009,
        {{"schedule", script.name}, {"expected", script.program}, {"given", program.name}});
  }
  if (script.mesh != mesh.name) {
    return make_diag(DiagCode::S010,
                     {{"schedule", script.name}, {"expected", script.mesh}, {"given", mesh.name}});
  }
  ScheduleState state = start_schedule(program, mesh, script.name);
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    auto next = run_step(std::move(state), script.steps[i]);
    if (!next.ok()) return with_note(std::move(next).error(), print_position(i, script));
    state = std::move(next).value();
  }
  return std::move(state.form);
}

Checked<Script> canonicalise(Script script) {
  for (Step& step : script.steps) {
    HP_TRY(const Primitive primitive, read_step(step));
    step = to_step(primitive);
  }
  return script;
}

NormalForm canonicalise(const Program& program, NormalForm form) {
  std::vector<Place> places;
  for (const Buffer* buffer : buffers_of(program)) {
    const Place* found = find_place(form, buffer->name);
    const Place place = found == nullptr ? Place{buffer->name, {}, {}} : *found;
    const bool replicated = place.at.empty() && place.partial.empty();
    if (buffer->role != Role::Temp || !replicated) places.push_back(place);
  }
  form.places = std::move(places);
  std::vector<NestForm> nests;
  for (const Nest& nest : program.nests) {
    const NestForm* found = find_nest(form, nest.name);
    nests.push_back(found == nullptr ? NestForm{nest.name, {}, {}} : *found);
    std::ranges::stable_partition(
        nests.back().items, [](const NestItem& item) { return std::holds_alternative<Par>(item); });
  }
  form.nests = std::move(nests);
  return form;
}

}  // namespace harpe
