#include "schedule/state.h"

#include <algorithm>
#include <utility>

#include "ir/text.h"

namespace harpe {
namespace {

template <class Range>
std::vector<std::string> names_of(const Range& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name);
  return names;
}

template <class Pointers>
std::vector<std::string> names_of_pointers(const Pointers& values) {
  std::vector<std::string> names;
  for (const auto* value : values) names.push_back(value->name);
  return names;
}

std::vector<std::string> all_digit_names(const NormalForm& form) {
  std::vector<std::string> names;
  for (const Split& split : form.splits) {
    for (const Digit& digit : split.digits) names.push_back(digit.name);
  }
  return names;
}

Diag refuse_unknown(DiagCode code, std::string_view name, std::vector<std::string> known) {
  return make_diag(code, {{"name", name}, {"hint", suggestion(name, known)}});
}

std::vector<std::string> split_digits(const NormalForm& form, std::string_view axis) {
  const Split* split = find_split(form, axis);
  return split == nullptr ? std::vector<std::string>{} : names_of(split->digits);
}

bool mentions(const LeafChoice& leaf, std::string_view name) {
  if (leaf.chunk == name) return true;
  return leaf.order && std::ranges::any_of(leaf.order->args, [&](const Scalar& argument) {
           return argument == Scalar(Name{std::string(name)});
         });
}

// Describes the use of `name` by one item of a nest; "" if there is none.
struct UseInItem {
  std::string_view name;
  bool mesh_axis;

  std::string operator()(const Par& par) const {
    const bool used = mesh_axis ? contains(par.axes, name) : par.digit == name;
    return used ? "`par " + par.digit + "`" : "";
  }
  std::string operator()(const For& loop) const {
    const bool used = loop.digit == name || contains(loop.skew, name);
    return used ? "`for " + loop.digit + "`" : "";
  }
  std::string operator()(const Move& move) const {
    const bool used = mesh_axis ? contains(move.over, name) : move.chunk == name;
    return used ? "`" + std::string(print(move.kind)) + " " + move.buffer + "`" : "";
  }
};

std::string find_use_in_nests(const NormalForm& form, std::string_view name, bool mesh_axis) {
  for (const NestForm& nest : form.nests) {
    std::string use;
    for (const NestItem& item : nest.items) {
      if (use.empty()) use = std::visit(UseInItem{name, mesh_axis}, item);
    }
    if (use.empty() && mentions(nest.leaf, name)) use = "the leaf";
    if (!use.empty()) return use + " of nest `" + nest.nest + "`";
  }
  return "";
}

}  // namespace

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string quote_list(const std::vector<std::string>& names) {
  if (names.empty()) return "nothing";
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += "`" + names[i] + "`";
  }
  return out;
}

ScheduleState start_schedule(const Program& program, const Mesh& mesh, std::string name) {
  HP_CHECK(is_ground(program), "program `" + program.name + "` has parameters left");
  NormalForm form;
  form.name = std::move(name);
  form.program = program.name;
  form.mesh = mesh.name;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role != Role::Temp) form.places.push_back(Place{buffer->name, {}, {}});
  }
  for (const Nest& nest : program.nests) form.nests.push_back(NestForm{nest.name, {}, {}});
  return {program, mesh, std::move(form)};
}

Checked<const Axis*> require_axis(const ScheduleState& state, std::string_view name) {
  if (const Axis* axis = find_axis(state.program, name)) return axis;
  return refuse_unknown(DiagCode::S017, name, names_of_pointers(axes_of(state.program)));
}

Checked<const Buffer*> require_buffer(const ScheduleState& state, std::string_view name) {
  if (const Buffer* buffer = find_buffer(state.program, name)) return buffer;
  return refuse_unknown(DiagCode::S012, name, names_of_pointers(buffers_of(state.program)));
}

Checked<DigitInfo> require_digit(const ScheduleState& state, std::string_view name) {
  const NormalForm& form = state.form;
  for (std::size_t split = 0; split < form.splits.size(); ++split) {
    const std::vector<Digit>& digits = form.splits[split].digits;
    for (std::size_t position = 0; position < digits.size(); ++position) {
      if (digits[position].name != name) continue;
      return DigitInfo{split, position, std::string(name), form.splits[split].axis,
                       digits[position].extent};
    }
  }
  return refuse_unknown(DiagCode::S013, name, all_digit_names(form));
}

Checked<DigitInfo> require_explicit_digit(const ScheduleState& state, std::string_view name) {
  HP_TRY(DigitInfo digit, require_digit(state, name));
  if (!digit.extent) {
    return make_diag(DiagCode::S018, {{"digit", digit.name}, {"axis", digit.axis}});
  }
  return digit;
}

Checked<std::size_t> require_nest(const ScheduleState& state, std::string_view name) {
  const auto found = std::ranges::find(state.form.nests, name, &NestForm::nest);
  if (found != state.form.nests.end()) {
    return static_cast<std::size_t>(found - state.form.nests.begin());
  }
  return refuse_unknown(DiagCode::S011, name, names_of(state.program.nests));
}

Checked<std::int64_t> require_mesh_axes(const ScheduleState& state, const MeshRef& axes) {
  const Mesh mesh = refined(state.mesh, state.form);
  if (axes.empty()) {
    return make_diag(DiagCode::S015, {{"axes", quote_list(names_of(mesh.axes))}});
  }
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto found = std::ranges::find(mesh.axes, axes[i], &MeshAxis::name);
    if (found == mesh.axes.end()) {
      const auto refine = std::ranges::find(state.form.refines, axes[i], &Refine::axis);
      if (refine == state.form.refines.end()) {
        return refuse_unknown(DiagCode::S014, axes[i], names_of(mesh.axes));
      }
      return make_diag(DiagCode::S014,
                       {{"name", axes[i]},
                        {"hint", " (refined into " + quote_list(names_of(refine->parts)) + ")"}});
    }
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      return make_diag(DiagCode::S016, {{"axis", axes[i]}, {"axes", print_mesh_ref(axes)}});
    }
    ranks *= found->size;
  }
  return ranks;
}

Checked<Ok> require_fresh_names(const ScheduleState& state, const std::vector<std::string>& names,
                                std::string_view replaced) {
  const std::vector<std::string> digits = all_digit_names(state.form);
  const Mesh mesh = refined(state.mesh, state.form);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string taken;
    if (contains(digits, names[i]) && names[i] != replaced) taken = "a digit";
    if (find_axis(mesh, names[i]) >= 0) taken = "an axis of the mesh";
    if (find_axis(state.program, names[i]) != nullptr) taken = "an axis of the program";
    if (std::ranges::count(names, names[i]) > 1) taken = "another result of this step";
    if (!taken.empty()) return make_diag(DiagCode::S021, {{"name", names[i]}, {"taken", taken}});
  }
  return Ok{};
}

const Nest& nest_of(const ScheduleState& state, std::size_t nest) {
  const Nest* found = find_nest(state.program, state.form.nests[nest].nest);
  HP_CHECK(found != nullptr, "nest `" + state.form.nests[nest].nest + "` is not in the program");
  return *found;
}

bool is_sequential(const ScheduleState& state, std::size_t nest, std::string_view axis) {
  return contains(nest_of(state, nest).seq, axis);
}

Checked<DigitInfo> require_bindable(const ScheduleState& state, std::size_t nest,
                                    std::string_view name) {
  HP_TRY(DigitInfo digit, require_digit(state, name));
  const Nest& what = nest_of(state, nest);
  if (contains(what.whole, digit.axis)) {
    return make_diag(DiagCode::S023,
                     {{"digit", digit.name}, {"axis", digit.axis}, {"nest", what.name}});
  }
  if (!contains(iteration_axes(state.program, what), digit.axis)) {
    return make_diag(DiagCode::S022,
                     {{"digit", digit.name}, {"axis", digit.axis}, {"nest", what.name}});
  }
  const NestForm& form = state.form.nests[nest];
  for (const NestItem& item : form.items) {
    const auto* par = std::get_if<Par>(&item);
    const auto* loop = std::get_if<For>(&item);
    if ((par != nullptr && par->digit == name) || (loop != nullptr && loop->digit == name)) {
      return make_diag(
          DiagCode::S024,
          {{"digit", digit.name}, {"nest", what.name}, {"use", par != nullptr ? "par" : "for"}});
    }
  }
  if (mentions(form.leaf, name)) {
    return make_diag(DiagCode::S024,
                     {{"digit", digit.name}, {"nest", what.name}, {"use", "leaf chunk"}});
  }
  return digit;
}

std::vector<std::string> iteration_axes(const Program& program, const Nest& nest) {
  std::vector<std::string> axes = nest.over;
  for (const Stmt& stmt : nest.stmts) {
    for (const Access& operand : stmt.operands) {
      for (const Rename& rename : operand.renames) {
        const Route* route = find_route(program, rename.source);
        if (route == nullptr || route->choices.size() != 2 || route->slots.empty()) continue;
        if (!contains(nest.over, route->choices[0])) continue;
        std::ranges::replace(axes, route->choices[1], route->slots[0]);
      }
    }
  }
  return axes;
}

std::vector<std::string> digits_of(const ScheduleState& state, const Access& access) {
  const Buffer* buffer = find_buffer(state.program, access.buffer);
  HP_CHECK(buffer != nullptr, "access to unknown buffer `" + access.buffer + "`");
  std::vector<std::string> digits;
  for (const std::string& axis : axis_names(*buffer)) {
    const auto rename = std::ranges::find(access.renames, axis, &Rename::axis);
    const bool renamed = rename != access.renames.end();
    const bool routed = renamed && !rename->member.empty();
    const std::string& source = renamed && !routed ? rename->source : axis;
    for (std::string& digit : split_digits(state.form, source)) digits.push_back(std::move(digit));
  }
  return digits;
}

std::vector<std::string> digits_of(const ScheduleState& state, const Buffer& buffer) {
  return digits_of(state, Access{buffer.name, {}});
}

std::string find_use_of_digit(const NormalForm& form, std::string_view digit) {
  for (const Place& place : form.places) {
    if (std::ranges::find(place.at, digit, &Placement::digit) != place.at.end()) {
      return "the home of `" + place.buffer + "`";
    }
  }
  for (const Layout& layout : form.layouts) {
    const bool named = std::ranges::find(layout.map.args, Scalar(Name{std::string(digit)})) !=
                       layout.map.args.end();
    const bool listed =
        layout.map.function == "table" && contains(split_digits(form, layout.axis), digit);
    if (named || listed) {
      return "the layout of `" + layout.axis + "`";
    }
  }
  return find_use_in_nests(form, digit, false);
}

std::string find_use_of_mesh_axis(const NormalForm& form, std::string_view axis) {
  for (const Place& place : form.places) {
    const auto uses = [&](const auto& placement) { return contains(placement.axes, axis); };
    if (std::ranges::any_of(place.at, uses) || std::ranges::any_of(place.partial, uses)) {
      return "the home of `" + place.buffer + "`";
    }
  }
  return find_use_in_nests(form, axis, true);
}

Checked<std::size_t> require_loop(const ScheduleState& state, std::size_t nest,
                                  std::string_view digit) {
  const NestForm& form = state.form.nests[nest];
  std::vector<std::string> loops;
  for (std::size_t i = 0; i < form.items.size(); ++i) {
    const auto* loop = std::get_if<For>(&form.items[i]);
    if (loop == nullptr) continue;
    if (loop->digit == digit) return i;
    loops.push_back(loop->digit);
  }
  return make_diag(DiagCode::S019,
                   {{"digit", digit}, {"nest", form.nest}, {"loops", quote_list(loops)}});
}

}  // namespace harpe
