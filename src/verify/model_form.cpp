#include <algorithm>
#include <bit>
#include <numeric>

#include "verify/model_builder.h"

namespace harpe::verifier {
namespace {

// D12: the largest power of two within the grain that still cuts the axis into 8 units per rank.
std::int64_t unit_of(std::int64_t size, std::int64_t align, std::int64_t ranks) {
  for (auto unit = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(align)));
       unit > 1; unit /= 2) {
    if ((size - 1) / unit + 1 >= 8 * ranks) return unit;
  }
  return 1;
}

// The first element of every logical block, and the axis' size after the last (D12).
std::vector<std::int64_t> starts_of(std::int64_t size, std::int64_t align, std::int64_t ranks,
                                    std::int64_t blocks) {
  const std::int64_t unit = unit_of(size, align, ranks);
  const std::int64_t units = (size - 1) / unit + 1;
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i <= blocks; ++i) {
    // floor(i * units / blocks) without the product, which could overflow.
    const std::int64_t whole = i * (units / blocks) + i * (units % blocks) / blocks;
    starts.push_back(std::min(size, unit * whole));
  }
  return starts;
}

// The mixed-radix number of the chosen digits, in the given order.
std::int64_t compose(const std::vector<std::size_t>& order,
                     const std::vector<std::int32_t>& extents,
                     const std::vector<std::int32_t>& values, std::int64_t lead) {
  return std::accumulate(order.begin(), order.end(), lead,
                         [&](std::int64_t block, std::size_t digit) {
                           return block * extents[digit] + values[digit];
                         });
}

}  // namespace

Diag ModelBuilder::misfit(std::string reason) const {
  return make_diag(DiagCode::V201, {{"form", form_.name}, {"reason", std::move(reason)}});
}

Checked<Ok> ModelBuilder::refine_mesh(const Mesh& mesh) {
  std::vector<std::string> refined;
  for (const Refine& refine : form_.refines) {
    if (find_axis(mesh, refine.axis) < 0 || std::ranges::count(refined, refine.axis) > 0) {
      return misfit("it refines mesh axis `" + refine.axis + "`, which is not there to refine");
    }
    refined.push_back(refine.axis);
  }
  for (const MeshAxis& axis : mesh.axes) {
    const auto refine = std::ranges::find(form_.refines, axis.name, &Refine::axis);
    if (refine == form_.refines.end()) {
      model_.mesh.push_back(axis);
      continue;
    }
    std::int64_t size = 1;
    for (const MeshAxis& part : refine->parts) {
      if (part.size < 1 || part.size > axis.size) return misfit("a part of `" + axis.name + "`");
      size *= part.size;
      if (size > axis.size) break;
      model_.mesh.push_back(part);
    }
    if (size != axis.size) {
      return misfit("the parts of mesh axis `" + axis.name + "` do not multiply to its " +
                    std::to_string(axis.size) + " ranks");
    }
  }
  model_.ranks = mesh.ranks();
  return Ok{};
}

int ModelBuilder::axis_index(std::string_view name) const {
  const auto found = std::ranges::find(model_.axes, name, &AxisModel::name);
  return found == model_.axes.end() ? -1 : static_cast<int>(found - model_.axes.begin());
}

Checked<Ok> ModelBuilder::add_axes() {
  for (const Split& split : form_.splits) {
    if (find_axis(program_, split.axis) == nullptr) {
      return misfit("it splits axis `" + split.axis + "`, which the program lacks");
    }
    if (std::ranges::count(form_.splits, split.axis, &Split::axis) > 1) {
      return misfit("it splits axis `" + split.axis + "` twice");
    }
  }
  for (const Axis* const axis : axes_of(program_)) {
    AxisModel out{.name = axis->name,
                  .size = size_of(*axis),
                  .digits = {},
                  .blocks = 1,
                  .begin = {},
                  .end = {},
                  .has_empty = false};
    const auto split = std::ranges::find(form_.splits, axis->name, &Split::axis);
    const std::vector<Digit> whole = {{.name = axis->name + ".all", .extent = std::nullopt}};
    for (const Digit& digit : split == form_.splits.end() ? whole : split->digits) {
      const std::int64_t extent = digit.extent.value_or(1);
      const bool is_known = std::ranges::count(model_.digits, digit.name, &DigitModel::name) > 0;
      if (is_known) return misfit("it names digit `" + digit.name + "` twice");
      if (extent < 1) return misfit("digit `" + digit.name + "` has no value");
      if (extent > kMaxBlocks / out.blocks) {
        return make_diag(DiagCode::V203,
                         {{"what", "axis `" + axis->name + "`"}, {"limit", kMaxBlocks}});
      }
      out.digits.push_back(static_cast<int>(model_.digits.size()));
      out.blocks *= extent;
      model_.digits.push_back({.name = digit.name,
                               .axis = static_cast<int>(model_.axes.size()),
                               .extent = static_cast<std::int32_t>(extent)});
    }
    model_.axes.push_back(std::move(out));
  }
  return Ok{};
}

Checked<Ok> ModelBuilder::lay_out_axes() {
  for (const Layout& layout : form_.layouts) {
    if (axis_index(layout.axis) < 0) {
      return misfit("it lays out axis `" + layout.axis + "`, which the program lacks");
    }
    if (std::ranges::count(form_.layouts, layout.axis, &Layout::axis) > 1) {
      return misfit("it lays out axis `" + layout.axis + "` twice");
    }
  }
  for (AxisModel& axis : model_.axes) {
    const std::int64_t align = find_axis(program_, axis.name)->align;
    const std::vector<std::int64_t> starts = starts_of(axis.size, align, model_.ranks, axis.blocks);
    HP_TRY(const std::vector<std::int64_t> logical, logical_blocks(axis));
    for (const std::int64_t block : logical) {
      axis.begin.push_back(starts[static_cast<std::size_t>(block)]);
      axis.end.push_back(starts[static_cast<std::size_t>(block) + 1]);
      axis.has_empty = axis.has_empty || axis.begin.back() == axis.end.back();
    }
  }
  return Ok{};
}

Checked<ModelBuilder::LayoutArgs> ModelBuilder::layout_args(const Layout& layout,
                                                            const AxisModel& axis) const {
  LayoutArgs args;
  for (const Scalar& scalar : layout.map.args) {
    if (const auto* const number = std::get_if<std::int64_t>(&scalar)) {
      args.numbers.push_back(*number);
    }
    for (std::size_t i = 0; i < axis.digits.size(); ++i) {
      const auto* const name = std::get_if<Name>(&scalar);
      const std::string& digit = model_.digits[static_cast<std::size_t>(axis.digits[i])].name;
      if (name != nullptr && name->text == digit) args.digits.push_back(i);
    }
  }
  const std::string& kind = layout.map.function;
  const std::size_t names = kind == "zigzag" ? 2 : kind == "stripe" ? 1 : 0;
  const bool known = names > 0 || kind == "table";
  const bool repeated = names == 2 && args.digits.size() == 2 && args.digits[0] == args.digits[1];
  const std::size_t numbers = kind == "table" ? static_cast<std::size_t>(axis.blocks) : 0;
  if (!known || repeated || args.digits.size() != names || args.numbers.size() != numbers ||
      layout.map.args.size() != names + numbers) {
    return misfit("layout `" + kind + "` of axis `" + axis.name + "` has arguments it cannot take");
  }
  return args;
}

// Per block of the axis, in digit order: its index in logical order.
Checked<std::vector<std::int64_t>> ModelBuilder::logical_blocks(const AxisModel& axis) const {
  std::vector<std::int64_t> logical(static_cast<std::size_t>(axis.blocks));
  std::iota(logical.begin(), logical.end(), std::int64_t{0});
  const auto layout = std::ranges::find(form_.layouts, axis.name, &Layout::axis);
  // Slabs (tie_slots) move no block.
  if (layout == form_.layouts.end() || layout->map.function == "slab") return logical;
  HP_TRY(const LayoutArgs args, layout_args(*layout, axis));
  if (layout->map.function == "table") {
    std::vector<std::int64_t> sorted = args.numbers;
    std::ranges::sort(sorted);
    if (sorted != logical) return misfit("the table of axis `" + axis.name + "` is no permutation");
    return args.numbers;
  }
  std::vector<std::int32_t> extents;
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < axis.digits.size(); ++i) {
    extents.push_back(model_.digits[static_cast<std::size_t>(axis.digits[i])].extent);
    if (std::ranges::count(args.digits, i) == 0) rest.push_back(i);
  }
  const bool zigzag = layout->map.function == "zigzag";
  const std::size_t spread = args.digits[0];
  if (zigzag && extents[args.digits[1]] != 2) {
    return misfit("the second digit of a zigzag has two values, `" + axis.name + "`'s has " +
                  std::to_string(extents[args.digits[1]]));
  }
  if (!zigzag) rest.push_back(spread);  // stripe(d): d is least significant
  std::vector<std::int32_t> values(extents.size(), 0);
  for (std::int64_t& block : logical) {
    // zigzag(d, h): the value of d if h is 0; counted from the far end if h is 1.
    const bool far = zigzag && values[args.digits[1]] == 1;
    const std::int64_t near = zigzag ? values[spread] : 0;
    block = compose(rest, extents, values, far ? 2 * extents[spread] - 1 - near : near);
    for (std::size_t i = values.size(); i-- > 0 && ++values[i] == extents[i];) values[i] = 0;
  }
  return logical;
}

}  // namespace harpe::verifier
