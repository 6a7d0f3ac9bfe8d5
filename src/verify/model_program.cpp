#include <algorithm>

#include "plan/plan.h"
#include "verify/model_builder.h"

namespace harpe::verifier {
namespace {

// Masks on data name the buffer that they read last.
bool asks_data(const Mask& mask) {
  const std::string& kind = mask.call.function;
  return kind == "doc" || kind == "length" || kind == "paged";
}

bool is_routed(const Access& access) {
  return std::ranges::any_of(access.renames,
                             [](const Rename& rename) { return !rename.member.empty(); });
}

}  // namespace

Checked<Radix> ModelBuilder::radix_over(const std::vector<std::string>& axis_names,
                                        const std::string& owner, std::int64_t limit) const {
  Radix radix;
  for (const std::string& name : axis_names) {
    const AxisModel& axis = model_.axes[static_cast<std::size_t>(axis_index(name))];
    for (const int digit : axis.digits) {
      radix.digits.push_back(digit);
      radix.extents.push_back(model_.digits[static_cast<std::size_t>(digit)].extent);
      if (radix.extents.back() > limit / radix.blocks) {
        return make_diag(DiagCode::V203, {{"what", owner}, {"limit", limit}});
      }
      radix.blocks *= radix.extents.back();
    }
  }
  radix.strides.assign(radix.digits.size(), 1);
  for (std::size_t i = radix.strides.size(); i-- > 1;) {
    radix.strides[i - 1] = radix.strides[i] * radix.extents[i];
  }
  return radix;
}

std::vector<AxisView> ModelBuilder::views_of(const Radix& radix) const {
  std::vector<AxisView> views;
  for (std::size_t first = 0; first < radix.digits.size();) {
    const int axis = model_.digits[static_cast<std::size_t>(radix.digits[first])].axis;
    const AxisModel& model = model_.axes[static_cast<std::size_t>(axis)];
    AxisView view{.axis = axis, .strides = std::vector<std::int64_t>(radix.digits.size(), 0)};
    const std::size_t last = first + model.digits.size();
    std::int64_t stride = 1;
    for (std::size_t i = last; i-- > first;) {
      view.strides[i] = stride;
      stride *= radix.extents[i];
    }
    views.push_back(std::move(view));
    first = last;
  }
  return views;
}

Checked<Ok> ModelBuilder::add_buffers() {
  for (const Buffer* const buffer : buffers_of(program_)) {
    HP_TRY(Radix radix,
           radix_over(axis_names(*buffer), "buffer `" + buffer->name + "`", kMaxBlocks));
    BufferModel out{.name = buffer->name,
                    .dtype = buffer->dtype,
                    .role = buffer->role,
                    .radix = std::move(radix),
                    .axes = {},
                    .opaque = 1,
                    .empty = {},
                    .home = {},
                    .partial = {}};
    out.axes = views_of(out.radix);
    out.home.resize(out.radix.digits.size());
    for (const Dim& dim : buffer->dims) {
      if (const auto* const extent = std::get_if<std::int64_t>(&dim)) out.opaque *= *extent;
    }
    out.empty.assign(static_cast<std::size_t>(out.radix.blocks), false);
    for (const AxisView& view : out.axes) {
      const AxisModel& axis = model_.axes[static_cast<std::size_t>(view.axis)];
      if (!axis.has_empty) continue;
      for (std::int64_t block = 0; block < out.radix.blocks; ++block) {
        const auto along =
            static_cast<std::size_t>(product(view.strides, point_of(out.radix, block)));
        if (axis.begin[along] == axis.end[along]) out.empty[static_cast<std::size_t>(block)] = true;
      }
    }
    model_.buffers.push_back(std::move(out));
  }
  return Ok{};
}

Checked<Ok> ModelBuilder::place_buffers() {
  for (const Place& line : form_.places) {
    if (model_.find_buffer(line.buffer) < 0) {
      return misfit("it places buffer `" + line.buffer + "`, which the program lacks");
    }
    if (std::ranges::count(form_.places, line.buffer, &Place::buffer) > 1) {
      return misfit("it places buffer `" + line.buffer + "` twice");
    }
    HP_REQUIRE_OK(place(line));
  }
  return Ok{};
}

Checked<std::vector<int>> ModelBuilder::mesh_axes(const MeshRef& names, std::vector<int>& used,
                                                  const std::string& owner) const {
  std::vector<int> axes;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(model_.mesh, name, &MeshAxis::name);
    const int axis = static_cast<int>(found - model_.mesh.begin());
    if (found == model_.mesh.end() || std::ranges::count(used, axis) > 0) {
      return misfit("the home of `" + owner + "` names mesh axis `" + name +
                    (found == model_.mesh.end() ? "`, which the mesh lacks" : "` twice"));
    }
    axes.push_back(axis);
    used.push_back(axis);
  }
  return axes;
}

Checked<Ok> ModelBuilder::place(const Place& line) {
  BufferModel& buffer = model_.buffers[static_cast<std::size_t>(model_.find_buffer(line.buffer))];
  std::vector<int> used;
  for (const Placement& at : line.at) {
    const auto found = std::ranges::find_if(buffer.radix.digits, [&](int digit) {
      return model_.digits[static_cast<std::size_t>(digit)].name == at.digit;
    });
    if (found == buffer.radix.digits.end()) {
      return misfit("`" + at.digit + "` is no digit of `" + line.buffer + "`");
    }
    const auto digit = static_cast<std::size_t>(found - buffer.radix.digits.begin());
    HP_TRY(std::vector<int> axes, mesh_axes(at.axes, used, line.buffer));
    std::int64_t size = 1;
    for (const int axis : axes) size *= model_.mesh[static_cast<std::size_t>(axis)].size;
    if (axes.empty() || !buffer.home[digit].empty() || size != buffer.radix.extents[digit]) {
      return misfit("the home of `" + line.buffer + "` puts the " +
                    std::to_string(buffer.radix.extents[digit]) + " values of `" + at.digit +
                    "` on " + std::to_string(size) + " coordinates");
    }
    buffer.home[digit] = std::move(axes);
  }
  for (const PartialHome& partial : line.partial) {
    HP_TRY(const std::vector<int> axes, mesh_axes(partial.axes, used, line.buffer));
    buffer.partial.insert(buffer.partial.end(), axes.begin(), axes.end());
  }
  if (!buffer.partial.empty() && buffer.role != Role::Out) {
    return make_diag(DiagCode::V202,
                     {{"what", "a partial home of `" + line.buffer + "`, which is no output,"}});
  }
  return Ok{};
}

int ModelBuilder::counterpart(int digit, int axis) const {
  const AxisModel& own =
      model_.axes[static_cast<std::size_t>(model_.digits[static_cast<std::size_t>(digit)].axis)];
  const AxisModel& other = model_.axes[static_cast<std::size_t>(axis)];
  const auto extent = [&](int d) { return model_.digits[static_cast<std::size_t>(d)].extent; };
  const bool same = own.begin == other.begin && own.end == other.end &&
                    std::ranges::equal(own.digits, other.digits, {}, extent, extent);
  if (!same) return -1;
  const auto place = std::ranges::find(own.digits, digit) - own.digits.begin();
  return other.digits[static_cast<std::size_t>(place)];
}

bool ModelBuilder::runs_over(const NestModel& nest, const std::string& axis) const {
  return std::ranges::find(nest.axes, axis_index(axis), &AxisView::axis) != nest.axes.end();
}

Checked<int> ModelBuilder::followed(const Access& line, int digit, const NestModel& nest) const {
  const AxisModel& own =
      model_.axes[static_cast<std::size_t>(model_.digits[static_cast<std::size_t>(digit)].axis)];
  const auto rename = std::ranges::find(line.renames, own.name, &Rename::axis);
  int found = digit;
  if (rename != line.renames.end() && !rename->member.empty()) {
    found = through_route(*rename, digit, nest);
  } else if (rename != line.renames.end() && !runs_over(nest, rename->source)) {
    return -1;  // a whole axis: every block along it
  } else if (rename != line.renames.end()) {
    found = counterpart(digit, axis_index(rename->source));
    if (found < 0) {
      return misfit("`" + line.buffer + "[" + own.name + "=" + rename->source +
                    "]`: the two axes have different blocks");
    }
  }
  return std::ranges::count(nest.space.digits, found) > 0 ? found : -1;
}

Checked<AccessModel> ModelBuilder::access(const Access& line, const NestModel& nest) const {
  AccessModel out{.buffer = model_.find_buffer(line.buffer),
                  .routed = is_routed(line),
                  .strides = std::vector<std::int64_t>(nest.space.digits.size(), 0),
                  .offsets = {0}};
  const BufferModel& buffer = model_.buffers[static_cast<std::size_t>(out.buffer)];
  for (std::size_t i = 0; i < buffer.radix.digits.size(); ++i) {
    HP_TRY(const int digit, followed(line, buffer.radix.digits[i], nest));
    if (digit >= 0) {
      const auto at = std::ranges::find(nest.space.digits, digit) - nest.space.digits.begin();
      out.strides[static_cast<std::size_t>(at)] += buffer.radix.strides[i];
      continue;
    }
    std::vector<std::int64_t> offsets;
    for (const std::int64_t offset : out.offsets) {
      for (std::int32_t value = 0; value < buffer.radix.extents[i]; ++value) {
        offsets.push_back(offset + value * buffer.radix.strides[i]);
      }
    }
    out.offsets = std::move(offsets);
  }
  return out;
}

Checked<std::optional<MaskModel>> ModelBuilder::mask(const Stmt& stmt,
                                                     const NestModel& nest) const {
  const auto view = [&](const Mask& line, std::size_t argument) -> const AxisView* {
    const auto* const name =
        argument < line.call.args.size() ? std::get_if<Name>(&line.call.args[argument]) : nullptr;
    const int axis = name == nullptr ? -1 : axis_index(name->text);
    const auto found = std::ranges::find(nest.axes, axis, &AxisView::axis);
    return found == nest.axes.end() ? nullptr : &*found;
  };
  std::optional<MaskModel> model;
  for (const Mask& line : stmt.masks) {
    if (asks_data(line)) continue;  // hides no known block
    const std::string& kind = line.call.function;
    const AxisView* const queries = view(line, 0);
    const AxisView* const keys = view(line, 1);
    const auto* const number =
        line.call.args.size() == 3 ? std::get_if<std::int64_t>(&line.call.args[2]) : nullptr;
    const bool known = kind == "causal"
                           ? line.call.args.size() == 2
                           : (kind == "window" || kind == "prefix") && number != nullptr;
    const bool together =
        !model || (queries != nullptr && keys != nullptr && queries->axis == model->queries.axis &&
                   keys->axis == model->keys.axis);
    if (!known || !together || queries == nullptr || keys == nullptr) {
      return make_diag(DiagCode::V202, {{"what", "mask `" + kind + "`"}});
    }
    if (!model) {
      const auto size = [&](int axis) { return model_.axes[static_cast<std::size_t>(axis)].size; };
      model = MaskModel{.queries = *queries,
                        .keys = *keys,
                        .diagonal = size(keys->axis) - size(queries->axis),
                        .reach = std::nullopt};
    }
    if (kind == "window") model->reach = std::min(model->reach.value_or(*number), *number);
    if (kind == "prefix") model->prefix = std::max(model->prefix, *number);
  }
  return model;
}

Checked<StatementModel> ModelBuilder::statement(const Stmt& stmt, const NestModel& nest) const {
  StatementModel out{.nest = static_cast<int>(model_.nests.size()),
                     .index = nest.statement_count,
                     .monoid = stmt.monoid,
                     .operands = {},
                     .targets = {},
                     .mask = {},
                     .tied = stmt.monoid == Monoid::Lse && stmt.targets.size() == 2,
                     .partner = {}};
  for (const Access& operand : stmt.operands) {
    HP_TRY(out.operands.emplace_back(), access(operand, nest));
  }
  for (const Mask& line : stmt.masks) {
    if (!asks_data(line)) continue;
    const std::string& buffer = std::get<Name>(line.call.args.back()).text;
    HP_TRY(out.operands.emplace_back(), access({.buffer = buffer, .renames = {}}, nest));
  }
  for (const Access& target : stmt.targets) {
    if (is_routed(target)) {
      return make_diag(DiagCode::V202, {{"what", "nest `" + nest.name + "`, which writes `" +
                                                     target.buffer + "` through a route,"}});
    }
    HP_TRY(out.targets.emplace_back(), access(target, nest));
  }
  HP_TRY(out.mask, mask(stmt, nest));
  if (!out.tied) return out;
  const Radix& state = model_.buffers[static_cast<std::size_t>(out.targets[0].buffer)].radix;
  const Radix& weight = model_.buffers[static_cast<std::size_t>(out.targets[1].buffer)].radix;
  std::vector<std::int64_t> strides(state.digits.size(), 0);
  for (std::size_t i = 0; i < weight.digits.size(); ++i) {
    const auto found = std::ranges::find(state.digits, weight.digits[i]);
    if (found == state.digits.end()) {
      return misfit("the targets of `" + nest.name + "` do not share their digits");
    }
    strides[static_cast<std::size_t>(found - state.digits.begin())] = weight.strides[i];
  }
  for (std::int64_t block = 0; block < state.blocks; ++block) {
    out.partner.push_back(static_cast<std::int32_t>(product(strides, point_of(state, block))));
  }
  return out;
}

Checked<Ok> ModelBuilder::add_nests() {
  for (const Nest& nest : program_.nests) {
    HP_TRY(NestModel out, make_nest(nest));
    for (const Stmt& stmt : nest.stmts) {
      HP_TRY(StatementModel model, statement(stmt, out));
      model_.statements.push_back(std::move(model));
      ++out.statement_count;
    }
    model_.nests.push_back(std::move(out));
  }
  return Ok{};
}

}  // namespace harpe::verifier
