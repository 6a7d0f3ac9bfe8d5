#include "compile/read_constraints.h"

#include <algorithm>

#include "compile/schedule_names.h"
#include "ir/mask_contract.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"

namespace harpe {
namespace {

Diag bad_home(const std::string& text, const std::string& wanted) {
  return make_diag(DiagCode::U109,
                   {{"option:flag", "{option:homes}"}, {"text", text}, {"wanted", wanted}});
}

// Parses "Skv@cp" for a buffer and appends it to `place.at`.
Checked<Ok> add_placement(const Program& program, const Mesh& mesh, const std::string& text,
                          const std::string& part, Place& place) {
  const std::size_t sign = std::min(part.find('@'), part.size());
  const std::string axis = part.substr(0, sign);
  const std::string along = sign < part.size() ? part.substr(sign + 1) : "";
  const auto axes = axis_names(*find_buffer(program, place.buffer));
  if (std::ranges::find(axes, axis) == axes.end()) {
    return bad_home(text, "axes of `" + place.buffer + "`, and `" + axis + "` is none");
  }
  if (find_axis(mesh, along) < 0) {
    return bad_home(text, "axes of the mesh behind @, and `" + along + "` is none");
  }
  for (const Placement& other : place.at) {
    if (other.axes.front() != along) continue;
    return bad_home(text, "axes of the mesh once each, and `" + along + "` is there twice");
  }
  place.at.push_back({axis, {along}});
  return Ok{};
}

// Parses axes of the program and of the mesh. They are not digits, which schedules make.
Checked<Place> parse_home(const Program& program, const Mesh& mesh, const std::string& text) {
  const std::size_t equals = text.find('=');
  Place place{.buffer = text.substr(0, equals), .at = {}, .partial = {}};
  const Buffer* buffer = find_buffer(program, place.buffer);
  if (equals == std::string::npos || buffer == nullptr || buffer->role == Role::Temp) {
    return bad_home(text,
                    "INPUT_OR_OUTPUT=AXIS@MESHAXIS,… as in k=Skv@cp; nothing behind = is a "
                    "copy on every rank");
  }
  std::size_t at = equals + 1;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    HP_REQUIRE_OK(add_placement(program, mesh, text, text.substr(at, end - at), place));
    at = end + 1;
  }
  std::ranges::sort(place.at, {},
                    [&](const Placement& one) { return find_axis(mesh, one.axes.front()); });
  return place;
}

bool has_mask_of_positions(const Program& program) {
  return std::ranges::any_of(program.nests, [](const Nest& nest) {
    return std::ranges::any_of(nest.stmts, [](const Stmt& stmt) {
      return std::ranges::any_of(stmt.masks,
                                 [](const Mask& mask) { return !read_mask(mask).contract->data; });
    });
  });
}

Checked<std::optional<AxisLayout>> parse_layout(const Program& program, const std::string& text) {
  static const std::vector<std::string> kLayouts = {"contiguous", "zigzag", "any"};
  const auto refuse = [&](const std::string& wanted) {
    return make_diag(DiagCode::U109,
                     {{"option:flag", "{option:layout}"}, {"text", text}, {"wanted", wanted}});
  };
  if (text == kLayouts[0]) return std::optional(AxisLayout::Contiguous);
  if (text == kLayouts[2]) return std::optional<AxisLayout>();
  if (text != kLayouts[1]) {
    return refuse("contiguous, zigzag or any" + suggestion(text, kLayouts));
  }
  if (has_mask_of_positions(program)) return std::optional(AxisLayout::Zigzag);
  return refuse("contiguous or any here: no mask of `" + program.name +
                "` goes by position, so no schedule has another layout");
}

bool keeps(const Program& program, const Mesh& mesh, const Applicability& schedule,
           const Constraints& constraints) {
  if (!schedule.script.ok()) return false;
  const Checked<NormalForm> form = replay(program, mesh, *schedule.script);
  return form.ok() && check_constraints(program, mesh, *form, constraints).ok();
}

}  // namespace

Checked<Constraints> read_constraints(const Program& program, const Mesh& mesh,
                                      const Request& request) {
  Constraints constraints;
  std::vector<Place>& homes = constraints.homes;
  for (const std::string& text : request.homes) {
    HP_TRY(Place place, parse_home(program, mesh, text));
    if (std::ranges::find(homes, place.buffer, &Place::buffer) != homes.end()) {
      return make_diag(DiagCode::U116, {{"option:flag", "{option:homes}"}, {"name", place.buffer}});
    }
    homes.push_back(std::move(place));
  }
  std::ranges::sort(homes, {}, &Place::buffer);
  HP_TRY(constraints.layout, parse_layout(program, request.layout));
  return constraints;
}

Checked<Ok> check_named(const Program& program, const Mesh& mesh, const NormalForm& form,
                        const Constraints& constraints) {
  Checked<Ok> kept = check_constraints(program, mesh, form, constraints);
  if (kept.ok()) return kept;
  // Lists variants first: `ring` beside `zigzag_ring`.
  std::string variants;
  std::string others;
  for (const Applicability& each : find_applicable(schedule_family(program), program, mesh)) {
    if (!keeps(program, mesh, each, constraints)) continue;
    const std::string name(each.name);
    const bool is_variant =
        name.find(form.name) != std::string::npos || form.name.find(name) != std::string::npos;
    (is_variant ? variants : others) += "`" + name + "`, ";
  }
  Diag refusal = with_note(std::move(kept).error(), "of schedule `" + form.name + "`");
  std::string names = variants + others;
  if (names.empty()) {
    return with_note(std::move(refusal),
                     "no named schedule keeps to it here; `auto` searches for one on a machine");
  }
  names.resize(names.size() - 2);
  return with_note(std::move(refusal), "schedules that keep to it: " + names + "; or `auto`");
}

}  // namespace harpe
