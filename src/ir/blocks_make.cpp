#include "ir/blocks.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/text.h"

namespace harpe {
namespace {

constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 20;        // of an axis
constexpr std::int64_t kMaxBufferBlocks = std::int64_t{1} << 26;  // product over a buffer's axes

// D12: block borders are multiples of this unit. It is large enough to keep tiles whole and small
// enough that every rank gets several units.
std::int64_t block_unit(std::int64_t size, std::int64_t align, std::int64_t ranks) {
  std::int64_t unit = 1;
  while (unit * 2 <= align) unit *= 2;
  while (unit > 1 && (size + unit - 1) / unit < 8 * ranks) unit /= 2;
  return unit;
}

std::vector<std::int64_t> block_starts(std::int64_t size, std::int64_t align, std::int64_t ranks,
                                       std::int64_t blocks) {
  const std::int64_t unit = block_unit(size, align, ranks);
  const std::int64_t units = (size + unit - 1) / unit;
  std::vector<std::int64_t> starts;
  starts.reserve(static_cast<std::size_t>(blocks) + 1);
  for (std::int64_t i = 0; i <= blocks; ++i) {
    __extension__ using Wide = __int128;  // i * units can exceed 64 bits
    const auto whole = static_cast<std::int64_t>(Wide{i} * units / blocks);
    starts.push_back(std::min(size, unit * whole));
  }
  return starts;
}

struct LayoutArgs {
  std::vector<int> positions;         // of the named digits within the axis
  std::vector<std::int64_t> numbers;  // of a table
};

// The digit values of one block of an axis, most significant first.
std::vector<std::int64_t> digit_values(const std::vector<std::int32_t>& extents,
                                       std::int64_t block) {
  std::vector<std::int64_t> values(extents.size());
  for (std::size_t i = extents.size(); i-- > 0;) {
    values[i] = block % extents[i];
    block /= extents[i];
  }
  return values;
}

std::int64_t zigzag_position(const std::vector<std::int32_t>& extents,
                             const std::vector<std::int64_t>& values, int spread, int half) {
  const auto s = static_cast<std::size_t>(spread);
  const auto h = static_cast<std::size_t>(half);
  std::int64_t position = values[h] == 0 ? values[s] : 2 * extents[s] - 1 - values[s];
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != s && i != h) position = position * extents[i] + values[i];
  }
  return position;
}

std::int64_t stripe_position(const std::vector<std::int32_t>& extents,
                             const std::vector<std::int64_t>& values, int striped) {
  const auto s = static_cast<std::size_t>(striped);
  std::int64_t position = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != s) position = position * extents[i] + values[i];
  }
  return position * extents[s] + values[s];
}

class Builder {
 public:
  Builder(const Program& program, const Mesh& mesh, const NormalForm& form)
      : program_(program), mesh_(mesh), form_(form) {}

  Checked<Ok> check_refinements() const {
    std::set<std::string> names;
    for (const MeshAxis& axis : mesh_.axes) names.insert(axis.name);
    std::set<std::string> refined_axes;
    for (const Refine& refine : form_.refines) {
      const int axis = harpe::find_axis(mesh_, refine.axis);
      if (axis < 0) return unknown("mesh axis", refine.axis, mesh_names(mesh_));
      if (!refined_axes.insert(refine.axis).second) {
        return make_diag(DiagCode::F108, {{"axis", refine.axis}});
      }
      names.erase(refine.axis);
      std::int64_t product = 1;
      for (const MeshAxis& part : refine.parts) {
        if (!names.insert(part.name).second)
          return make_diag(DiagCode::F108, {{"axis", part.name}});
        if (part.size < 1 || part.size > kMaxRanks) product = -1;
        if (product > 0) product *= part.size;
        if (product > kMaxRanks) product = -1;
      }
      const std::int64_t size = mesh_.axes[static_cast<std::size_t>(axis)].size;
      if (product != size) {
        return make_diag(DiagCode::F107,
                         {{"axis", refine.axis}, {"product", product}, {"size", size}});
      }
    }
    return Ok{};
  }

  static std::vector<std::string> mesh_names(const Mesh& mesh) {
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh.axes) names.push_back(axis.name);
    return names;
  }

  [[nodiscard]] Diag unknown(std::string_view what, const std::string& name,
                             const std::vector<std::string>& candidates) const {
    return make_diag(DiagCode::F101, {{"what", what},
                                      {"name", name},
                                      {"form", form_.name},
                                      {"hint", suggestion(name, candidates)}});
  }

  Checked<std::vector<DigitTable>> make_digits(std::vector<AxisTable>& axes,
                                               std::int64_t ranks) const {
    HP_REQUIRE_OK(check_splits());
    std::vector<DigitTable> digits;
    std::set<std::string> names;
    for (const Axis* axis : axes_of(program_)) {
      AxisTable table{.name = axis->name,
                      .size = size_of(*axis),
                      .digits = {},
                      .blocks = 1,
                      .starts = {},
                      .slabs = {},
                      .logical = {}};
      const Split* split = find_split(form_, axis->name);
      const std::vector<Digit> none = {{.name = axis->name + ".all", .extent = std::nullopt}};
      for (const Digit& digit : split != nullptr ? split->digits : none) {
        HP_REQUIRE_OK(check_digit(*axis, digit, split, names));
        table.digits.push_back(static_cast<int>(digits.size()));
        const auto extent = static_cast<std::int32_t>(digit.extent.value_or(1));
        digits.push_back(
            {.name = digit.name, .axis = static_cast<int>(axes.size()), .extent = extent});
        table.blocks *= extent;
        if (table.blocks > kMaxBlocks) {
          return make_diag(DiagCode::F105,
                           {{"axis", axis->name}, {"blocks", table.blocks}, {"limit", kMaxBlocks}});
        }
      }
      table.starts = block_starts(table.size, axis->align, ranks, table.blocks);
      axes.push_back(std::move(table));
    }
    return digits;
  }

  Checked<Ok> apply_layouts(const std::vector<DigitTable>& digits,
                            std::vector<AxisTable>& axes) const {
    for (AxisTable& axis : axes) {
      axis.logical.resize(static_cast<std::size_t>(axis.blocks));
      std::iota(axis.logical.begin(), axis.logical.end(), std::int64_t{0});
    }
    std::set<std::string> seen;
    for (const Layout& layout : form_.layouts) {
      const auto axis = std::ranges::find(axes, layout.axis, &AxisTable::name);
      if (axis == axes.end()) return unknown("axis", layout.axis, axis_name_list(axes));
      if (!seen.insert(layout.axis).second) return bad_layout(layout, "it has two layouts");
      HP_REQUIRE_OK(apply_layout(layout, digits, axes, *axis));
    }
    return Ok{};
  }

  Checked<std::vector<BufferTable>> make_buffers(const Mesh& mesh,
                                                 const std::vector<DigitTable>& digits,
                                                 const std::vector<AxisTable>& axes) const {
    std::vector<BufferTable> tables;
    for (const Buffer* buffer : buffers_of(program_)) {
      HP_REQUIRE_OK(check_block_count(*buffer, axes));
      tables.push_back(make_buffer(*buffer, digits, axes));
    }
    std::set<std::string> seen;
    for (const Place& place : form_.places) {
      const auto table = std::ranges::find(tables, place.buffer, &BufferTable::name);
      if (table == tables.end()) return unknown("buffer", place.buffer, buffer_names());
      if (!seen.insert(place.buffer).second) {
        return make_diag(DiagCode::F113, {{"item", place.buffer}, {"verb", "placed"}});
      }
      HP_REQUIRE_OK(apply_place(place, mesh, digits, *table));
    }
    return tables;
  }

 private:
  Checked<Ok> check_splits() const {
    std::set<std::string> seen;
    std::vector<std::string> known;
    for (const Axis* axis : axes_of(program_)) known.push_back(axis->name);
    for (const Split& split : form_.splits) {
      if (harpe::find_axis(program_, split.axis) == nullptr) {
        return unknown("axis", split.axis, known);
      }
      if (!seen.insert(split.axis).second) {
        return make_diag(DiagCode::F102, {{"axis", split.axis}});
      }
    }
    return Ok{};
  }

  static Checked<Ok> check_digit(const Axis& axis, const Digit& digit, const Split* split,
                                 std::set<std::string>& names) {
    if (!names.insert(digit.name).second) {
      return make_diag(DiagCode::F103, {{"digit", digit.name}});
    }
    if (split != nullptr && !digit.extent && &digit != &split->digits.back()) {
      return make_diag(DiagCode::F106, {{"digit", digit.name}, {"axis", axis.name}});
    }
    const std::int64_t extent = digit.extent.value_or(1);
    if (extent < 1 || extent > kMaxBlocks) {
      return make_diag(
          DiagCode::F104,
          {{"digit", digit.name}, {"axis", axis.name}, {"extent", extent}, {"limit", kMaxBlocks}});
    }
    return Ok{};
  }

  static std::vector<std::string> axis_name_list(const std::vector<AxisTable>& axes) {
    std::vector<std::string> names;
    for (const AxisTable& axis : axes) names.push_back(axis.name);
    return names;
  }

  [[nodiscard]] std::vector<std::string> buffer_names() const {
    std::vector<std::string> names;
    for (const Buffer* buffer : buffers_of(program_)) names.push_back(buffer->name);
    return names;
  }

  static Diag bad_layout(const Layout& layout, const std::string& reason) {
    return make_diag(DiagCode::F109, {{"axis", layout.axis}, {"reason", reason}});
  }

  // The positions within the axis of the digits that a layout names.
  static Checked<LayoutArgs> layout_args(const Layout& layout,
                                         const std::vector<DigitTable>& digits,
                                         const AxisTable& axis) {
    LayoutArgs args;
    for (const Scalar& scalar : layout.map.args) {
      if (const auto* number = std::get_if<std::int64_t>(&scalar)) {
        args.numbers.push_back(*number);
        continue;
      }
      const auto* name = std::get_if<Name>(&scalar);
      const auto found = std::ranges::find_if(axis.digits, [&](int digit) {
        return name != nullptr && digits[static_cast<std::size_t>(digit)].name == name->text;
      });
      if (found == axis.digits.end()) {
        return bad_layout(layout, "`" + print(scalar) + "` is not one of its digits");
      }
      args.positions.push_back(static_cast<int>(found - axis.digits.begin()));
    }
    return args;
  }

  Checked<Ok> apply_layout(const Layout& layout, const std::vector<DigitTable>& digits,
                           std::vector<AxisTable>& axes, AxisTable& axis) const {
    if (layout.map.function == "slab") return apply_slab(layout, digits, axes, axis);
    HP_TRY(const LayoutArgs args, layout_args(layout, digits, axis));
    std::vector<std::int32_t> extents;
    for (const int digit : axis.digits)
      extents.push_back(digits[static_cast<std::size_t>(digit)].extent);
    const auto& at = args.positions;
    if (layout.map.function == "zigzag") {
      if (at.size() != 2 || !args.numbers.empty() || at[0] == at[1]) {
        return bad_layout(layout, "zigzag takes two different digits");
      }
      if (const std::int32_t half = extents[static_cast<std::size_t>(at[1])]; half != 2) {
        return bad_layout(
            layout, "the second digit of a zigzag has extent 2, here " + std::to_string(half));
      }
    } else if (layout.map.function == "stripe") {
      if (at.size() != 1 || !args.numbers.empty()) {
        return bad_layout(layout, "stripe takes one digit");
      }
    } else if (layout.map.function == "table") {
      return apply_table(layout, args, axis);
    } else {
      return bad_layout(layout,
                        "`" + layout.map.function + "` is not zigzag, stripe, table or slab");
    }
    for (std::int64_t block = 0; block < axis.blocks; ++block) {
      const std::vector<std::int64_t> values = digit_values(extents, block);
      axis.logical[static_cast<std::size_t>(block)] =
          layout.map.function == "zigzag" ? zigzag_position(extents, values, at[0], at[1])
                                          : stripe_position(extents, values, at[0]);
    }
    return Ok{};
  }

  // A routed axis keeps mixed-radix blocks; some of its digits are aliases of source digits.
  Checked<Ok> apply_slab(const Layout& layout, const std::vector<DigitTable>& digits,
                         const std::vector<AxisTable>& axes, AxisTable& axis) const {
    std::vector<int> named;
    for (const Scalar& scalar : layout.map.args) {
      const auto* name = std::get_if<Name>(&scalar);
      const auto found = std::ranges::find_if(digits, [&](const DigitTable& digit) {
        return name != nullptr && digit.name == name->text;
      });
      if (found == digits.end()) return bad_layout(layout, "`" + print(scalar) + "` is no digit");
      named.push_back(static_cast<int>(found - digits.begin()));
    }
    if (named.empty() || named.size() % 2 != 0) {
      return bad_layout(layout, "slab takes pairs of a slot digit and a source digit");
    }
    for (std::size_t i = 0; i < named.size(); i += 2) {
      const DigitTable& own = digits[static_cast<std::size_t>(named[i])];
      const DigitTable& source = digits[static_cast<std::size_t>(named[i + 1])];
      if (std::ranges::find(axis.digits, named[i]) == axis.digits.end()) {
        return bad_layout(layout, "`" + own.name + "` is not one of its digits");
      }
      if (own.extent != source.extent) {
        return bad_layout(layout, "`" + own.name + "` and `" + source.name + "` differ in extent");
      }
      const std::string& tokens = axes[static_cast<std::size_t>(source.axis)].name;
      if (!is_routed(layout.axis, tokens)) {
        return bad_layout(layout, "no route has slots along it for the tokens of `" + tokens + "`");
      }
      const bool again = std::ranges::any_of(axis.slabs, [&](const auto& slab) {
        return slab.first == named[i] || slab.second == named[i + 1];
      });
      if (again) {
        return bad_layout(layout, "it ties `" + own.name + "` or `" + source.name + "` twice");
      }
      axis.slabs.emplace_back(named[i], named[i + 1]);
    }
    return Ok{};
  }

  [[nodiscard]] bool is_routed(const std::string& slots, const std::string& tokens) const {
    return std::ranges::any_of(program_.decls, [&](const Decl& decl) {
      const auto* const route = std::get_if<Route>(&decl);
      return route != nullptr && route->slots.back() == slots && route->choices.front() == tokens;
    });
  }

  static Checked<Ok> apply_table(const Layout& layout, const LayoutArgs& args, AxisTable& axis) {
    std::vector<std::int64_t> sorted = args.numbers;
    std::ranges::sort(sorted);
    // `logical` is still the identity here.
    const bool permutation = args.positions.empty() && std::ranges::equal(sorted, axis.logical);
    if (!permutation) {
      return bad_layout(layout, "a table lists each of the " + std::to_string(axis.blocks) +
                                    " blocks' positions once");
    }
    axis.logical = args.numbers;
    return Ok{};
  }

  static Checked<Ok> check_block_count(const Buffer& buffer, const std::vector<AxisTable>& axes) {
    std::int64_t blocks = 1;
    for (const std::string& name : axis_names(buffer)) {
      blocks *= std::ranges::find(axes, name, &AxisTable::name)->blocks;
      if (blocks > kMaxBufferBlocks) {
        return make_diag(DiagCode::F116, {{"buffer", buffer.name}, {"limit", kMaxBufferBlocks}});
      }
    }
    return Ok{};
  }

  static BufferTable make_buffer(const Buffer& buffer, const std::vector<DigitTable>& digits,
                                 const std::vector<AxisTable>& axes) {
    BufferTable table{.name = buffer.name,
                      .dtype = buffer.dtype,
                      .role = buffer.role,
                      .dims = {},
                      .axes = {},
                      .digits = {},
                      .blocks = 1,
                      .strides = {},
                      .home = {},
                      .partial_axes = {}};
    const auto add_axis = [&](DimTable& dim, const std::string& name) {
      const auto axis = std::ranges::find(axes, name, &AxisTable::name);
      HP_CHECK(axis != axes.end(), "axis `" + name + "` of buffer `" + buffer.name + "`");
      const int index = static_cast<int>(axis - axes.begin());
      dim.axes.push_back(index);
      table.axes.push_back(index);
      table.digits.insert(table.digits.end(), axis->digits.begin(), axis->digits.end());
    };
    for (const Dim& dim : buffer.dims) {
      DimTable out;
      if (const auto* name = std::get_if<std::string>(&dim)) add_axis(out, *name);
      if (const auto* extent = std::get_if<std::int64_t>(&dim)) out.opaque = *extent;
      if (const auto* names = std::get_if<std::vector<std::string>>(&dim)) {
        for (const std::string& name : *names) add_axis(out, name);
      }
      table.dims.push_back(std::move(out));
    }
    table.strides.resize(table.digits.size());
    for (std::size_t i = table.digits.size(); i-- > 0;) {
      table.strides[i] = table.blocks;
      table.blocks *= digits[static_cast<std::size_t>(table.digits[i])].extent;
    }
    table.home.resize(table.digits.size());
    return table;
  }

  // `partial m@a`: mesh axes along which homes hold partial states under `m`.
  Checked<Ok> apply_partial(const std::string& buffer, const PartialHome& partial, const Mesh& mesh,
                            std::set<std::string>& used, BufferTable& table) const {
    const auto refuse = [&](const std::string& reason) {
      return make_diag(
          DiagCode::F242,
          {{"buffer", buffer}, {"axes", print_mesh_ref(partial.axes)}, {"reason", reason}});
    };
    if (table.role != Role::Out) return refuse("it is no output");
    for (const Nest& nest : program_.nests) {
      for (const Stmt& stmt : nest.stmts) {
        if (std::ranges::find(stmt.targets, buffer, &Access::buffer) == stmt.targets.end())
          continue;
        if (stmt.monoid == partial.monoid) continue;
        return refuse(stmt.monoid == Monoid::Store
                          ? "nest `" + nest.name + "` stores it"
                          : "nest `" + nest.name + "` combines it by `" +
                                std::string(print(stmt.monoid)) + "`, not `" +
                                std::string(print(partial.monoid)) + "`");
      }
    }
    for (const std::string& name : partial.axes) {
      const int axis = harpe::find_axis(mesh, name);
      if (axis < 0) return unknown("mesh axis", name, mesh_names(mesh));
      if (!used.insert(name).second) {
        return make_diag(DiagCode::F112, {{"buffer", buffer}, {"axis", name}});
      }
      table.partial_axes.push_back(axis);
    }
    return Ok{};
  }

  Checked<Ok> apply_place(const Place& place, const Mesh& mesh,
                          const std::vector<DigitTable>& digits, BufferTable& table) const {
    std::set<std::string> used;
    for (const PartialHome& partial : place.partial) {
      HP_REQUIRE_OK(apply_partial(place.buffer, partial, mesh, used, table));
    }
    for (const Placement& at : place.at) {
      const auto digit = std::ranges::find_if(table.digits, [&](int d) {
        return digits[static_cast<std::size_t>(d)].name == at.digit;
      });
      if (digit == table.digits.end()) {
        return make_diag(DiagCode::F110, {{"digit", at.digit}, {"buffer", place.buffer}});
      }
      std::vector<int> axes;
      std::int64_t size = 1;
      for (const std::string& name : at.axes) {
        const int axis = harpe::find_axis(mesh, name);
        if (axis < 0) return unknown("mesh axis", name, mesh_names(mesh));
        if (!used.insert(name).second) {
          return make_diag(DiagCode::F112, {{"buffer", place.buffer}, {"axis", name}});
        }
        axes.push_back(axis);
        size *= mesh.axes[static_cast<std::size_t>(axis)].size;
      }
      const std::int32_t extent = digits[static_cast<std::size_t>(*digit)].extent;
      if (extent != size) {
        return make_diag(DiagCode::F111, {{"digit", at.digit},
                                          {"extent", extent},
                                          {"axes", print_mesh_ref(at.axes)},
                                          {"size", size}});
      }
      table.home[static_cast<std::size_t>(digit - table.digits.begin())] = std::move(axes);
    }
    return Ok{};
  }

  const Program& program_;
  const Mesh& mesh_;
  const NormalForm& form_;
};

}  // namespace

Checked<Blocks> Blocks::make(const Program& program, const Mesh& mesh, const NormalForm& form) {
  HP_REQUIRE_OK(check_mesh(mesh));
  const Builder builder(program, mesh, form);
  HP_REQUIRE_OK(builder.check_refinements());
  Blocks blocks;
  blocks.mesh_ = refined(mesh, form);
  blocks.ranks_ = blocks.mesh_.ranks();
  blocks.mesh_strides_.resize(blocks.mesh_.axes.size());
  std::int64_t stride = 1;
  for (std::size_t i = blocks.mesh_.axes.size(); i-- > 0;) {
    blocks.mesh_strides_[i] = stride;
    stride *= blocks.mesh_.axes[i].size;
  }
  HP_TRY(blocks.digits_, builder.make_digits(blocks.axes_, blocks.ranks_));
  HP_REQUIRE_OK(builder.apply_layouts(blocks.digits_, blocks.axes_));
  HP_TRY(blocks.buffers_, builder.make_buffers(blocks.mesh_, blocks.digits_, blocks.axes_));
  return blocks;
}

}  // namespace harpe
