#include "ir/blocks.h"

#include <algorithm>
#include <ranges>

namespace harpe {
namespace {

template <class Table>
int index_of(const std::vector<Table>& tables, std::string_view name) {
  const auto found = std::ranges::find(tables, name, &Table::name);
  return found == tables.end() ? -1 : static_cast<int>(found - tables.begin());
}

}  // namespace

int Blocks::find_digit(std::string_view name) const { return index_of(digits_, name); }
int Blocks::find_axis(std::string_view name) const { return index_of(axes_, name); }
int Blocks::find_buffer(std::string_view name) const { return index_of(buffers_, name); }

std::int64_t Blocks::extent(std::span<const int> mesh_axes) const {
  std::int64_t extent = 1;
  for (const int axis : mesh_axes) extent *= mesh_.axes[static_cast<std::size_t>(axis)].size;
  return extent;
}

std::int64_t Blocks::coordinate(RankId rank, std::span<const int> mesh_axes) const {
  std::int64_t coordinate = 0;
  for (const int axis : mesh_axes) {
    const auto a = static_cast<std::size_t>(axis);
    coordinate =
        coordinate * mesh_.axes[a].size + rank.value / mesh_strides_[a] % mesh_.axes[a].size;
  }
  return coordinate;
}

RankId Blocks::with_coordinate(RankId rank, std::span<const int> mesh_axes,
                               std::int64_t value) const {
  const std::int64_t size = extent(mesh_axes);
  value = (value % size + size) % size;
  std::int64_t result = rank.value;
  for (std::size_t i = mesh_axes.size(); i-- > 0;) {
    const auto a = static_cast<std::size_t>(mesh_axes[i]);
    const std::int64_t axis_size = mesh_.axes[a].size;
    const std::int64_t old = rank.value / mesh_strides_[a] % axis_size;
    result += (value % axis_size - old) * mesh_strides_[a];
    value /= axis_size;
  }
  return RankId(result);
}

Region Blocks::home(int buffer, RankId rank) const {
  const BufferTable& table = buffers_[static_cast<std::size_t>(buffer)];
  Region region(table.digits.size(), kAll);
  for (std::size_t i = 0; i < region.size(); ++i) {
    // A digit of extent 1 has only one value; kAll makes equal regions compare equal.
    if (!table.home[i].empty() && digits_[static_cast<std::size_t>(table.digits[i])].extent > 1) {
      region[i] = static_cast<std::int32_t>(coordinate(rank, table.home[i]));
    }
  }
  return region;
}

std::vector<BlockId> Blocks::blocks_in(std::span<const int> digits, const Region& region) const {
  std::vector<BlockId> blocks = {0};
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::int32_t extent = digits_[static_cast<std::size_t>(digits[i])].extent;
    if (region[i] != kAll || extent == 1) {
      const std::int32_t value = region[i] == kAll ? 0 : region[i];
      for (BlockId& block : blocks) block = block * extent + value;
      continue;
    }
    std::vector<BlockId> wider;
    wider.reserve(blocks.size() * static_cast<std::size_t>(extent));
    for (const BlockId block : blocks) {
      for (std::int32_t value = 0; value < extent; ++value) wider.push_back(block * extent + value);
    }
    blocks = std::move(wider);
  }
  return blocks;
}

Region Blocks::region_of(std::span<const int> digits, BlockId block) const {
  Region region(digits.size());
  for (std::size_t i = digits.size(); i-- > 0;) {
    const std::int32_t extent = digits_[static_cast<std::size_t>(digits[i])].extent;
    region[i] = static_cast<std::int32_t>(block % extent);
    block /= extent;
  }
  return region;
}

Interval Blocks::interval(int axis, std::int64_t axis_block) const {
  const AxisTable& table = axes_[static_cast<std::size_t>(axis)];
  const auto logical =
      static_cast<std::size_t>(table.logical[static_cast<std::size_t>(axis_block)]);
  return {table.starts[logical], table.starts[logical + 1]};
}

std::int64_t Blocks::axis_block(int axis, std::span<const int> digits,
                                std::span<const std::int32_t> values) const {
  std::int64_t block = 0;
  for (const int digit : axes_[static_cast<std::size_t>(axis)].digits) {
    const auto at = std::ranges::find(digits, digit);
    HP_CHECK(at != digits.end(), "axis `" + axes_[static_cast<std::size_t>(axis)].name + "`");
    const std::int32_t value = values[static_cast<std::size_t>(at - digits.begin())];
    block = block * digits_[static_cast<std::size_t>(digit)].extent + std::max(value, 0);
  }
  return block;
}

std::int64_t Blocks::elements(int buffer, BlockId block) const {
  const BufferTable& table = buffers_[static_cast<std::size_t>(buffer)];
  std::int64_t elements = 1;
  for (const DimTable& dim : table.dims) elements *= dim.opaque;
  // A buffer's digits are those of its axes, axis by axis.
  for (const int axis : table.axes | std::views::reverse) {
    const std::int64_t blocks = axes_[static_cast<std::size_t>(axis)].blocks;
    elements *= interval(axis, block % blocks).size();
    block /= blocks;
  }
  return elements;
}

const Route* find_route_of(const Program& program, const Nest& nest) {
  for (const Stmt& stmt : nest.stmts) {
    for (const Access& access : stmt.operands) {
      for (const Rename& rename : access.renames) {
        if (const Route* route = find_route(program, rename.source)) return route;
      }
    }
  }
  return nullptr;
}

std::vector<int> iteration_digits(const Program& program, const Blocks& blocks, const Nest& nest) {
  const Route* route = find_route_of(program, nest);
  const bool over_choices =
      route != nullptr && std::ranges::all_of(route->choices, [&](const std::string& axis) {
        return std::ranges::find(nest.over, axis) != nest.over.end();
      });
  std::vector<int> digits;
  for (const std::string& name : nest.over) {
    const bool picks = over_choices && name == route->choices.back();
    const int axis = blocks.find_axis(picks ? route->slots.front() : name);
    HP_CHECK(axis >= 0, "axis `" + name + "` of nest `" + nest.name + "`");
    const auto& of_axis = blocks.axes()[static_cast<std::size_t>(axis)].digits;
    digits.insert(digits.end(), of_axis.begin(), of_axis.end());
  }
  return digits;
}

std::optional<Region> intersect(const Region& a, const Region& b) {
  Region both(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != kAll && b[i] != kAll && a[i] != b[i]) return std::nullopt;
    both[i] = a[i] == kAll ? b[i] : a[i];
  }
  return both;
}

}  // namespace harpe
