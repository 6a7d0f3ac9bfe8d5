#include "exec/actions/tensors.h"

#include <set>
#include <utility>

#include "support/check.h"

namespace harpe::actions {
namespace {

// A dense whole tensor as one patch, in the order of keys_of.
Patch whole_tensor(const Blocks& blocks, const BufferTable& table, std::byte* data) {
  Patch patch{
      .data = data, .dtype = table.dtype, .mode = WriteMode::Set, .span = {}, .strides = {}};
  const std::vector<AxisKey> keys = keys_of(table);
  std::vector<std::int64_t> axis_strides(table.axes.size());
  std::vector<std::int64_t> opaque_strides;
  std::int64_t stride = 1;
  std::size_t axis = table.axes.size();
  for (std::size_t dim = table.dims.size(); dim-- > 0;) {
    if (table.dims[dim].axes.empty()) {
      opaque_strides.insert(opaque_strides.begin(), stride);
      stride *= table.dims[dim].opaque;
    }
    for (std::size_t i = table.dims[dim].axes.size(); i-- > 0;) {
      axis_strides[--axis] = stride;
      stride *= length_of(blocks, table, table.axes[axis]);
    }
  }
  for (const AxisKey key : keys) {
    patch.span.push_back({.begin = 0, .end = length_of(blocks, table, key)});
  }
  patch.strides = std::move(axis_strides);
  patch.strides.insert(patch.strides.end(), opaque_strides.begin(), opaque_strides.end());
  return patch;
}

std::vector<std::size_t> all_axes(const Patch& patch) {
  std::vector<std::size_t> axes;
  axes.reserve(patch.span.size());
  for (std::size_t axis = 0; axis < patch.span.size(); ++axis) axes.push_back(axis);
  return axes;
}

// Adds one move for every rectangle of the home.
void add_moves(const Setting& setting, AllocId home, const Patch& tensor, Direction direction,
               HomeMoves& moves) {
  const std::vector<Patch> patches = patches_of_home(setting, home);
  const std::string& buffer = setting.plan.allocs[home.index()].buffer;
  const Participant parts[] = {{.buffer = buffer, .axes = all_axes(tensor), .patches = {tensor}},
                               {.buffer = buffer, .axes = all_axes(tensor), .patches = patches}};
  for (const Patch& patch : patches) {
    for (const Cell& cell : cut(patch.span, parts, {}, std::nullopt)) {
      const bool to_homes = direction == Direction::ToHomes;
      const View& to = cell.views[to_homes ? 1 : 0];
      const View& from = cell.views[to_homes ? 0 : 1];
      moves.assigns.push_back(make_assign(cell, to, from));
      std::int64_t volume = 1;
      for (const Interval& span : cell.span) volume *= span.size();
      moves.elements += volume;
    }
  }
}

}  // namespace

const BufferTable& table_of(const Setting& setting, const std::string& buffer) {
  const int index = setting.blocks.find_buffer(buffer);
  HP_CHECK(index >= 0, "buffer `" + buffer + "`");
  return setting.blocks.buffers()[static_cast<std::size_t>(index)];
}

std::vector<HomeMoves> home_moves(const Setting& setting, const std::string& buffer,
                                  std::byte* whole, Direction direction) {
  const BufferTable& table = table_of(setting, buffer);
  const int index = setting.blocks.find_buffer(buffer);
  const Patch tensor = whole_tensor(setting.blocks, table, whole);
  std::set<std::pair<std::int64_t, Region>> seen;  // homes are equal or disjoint: digits are pinned
  std::vector<HomeMoves> homes;
  for (std::size_t i = 0; i < setting.plan.allocs.size(); ++i) {
    const Alloc& alloc = setting.plan.allocs[i];
    if (alloc.level != Level::Home || alloc.buffer != buffer) continue;
    const Region region = setting.blocks.home(index, alloc.rank);
    const std::int64_t part = setting.blocks.coordinate(alloc.rank, table.partial_axes);
    HomeMoves& home = homes.emplace_back();
    home.rank = alloc.rank;
    home.part = part;
    home.is_copy = !seen.insert({part, region}).second;
    add_moves(setting, AllocId(static_cast<std::int64_t>(i)), tensor, direction, home);
  }
  return homes;
}

}  // namespace harpe::actions
