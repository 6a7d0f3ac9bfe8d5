#include "exec/cpu/tensors.h"

#include <cstring>
#include <set>

#include "exec/cpu/action.h"
#include "exec/cpu/partials.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

// A dense whole tensor as one patch, in the order of keys_of.
Patch whole_tensor(const Blocks& blocks, const BufferTable& table, HostTensor& tensor) {
  Patch patch{.data = tensor.data.data(),
              .dtype = tensor.dtype,
              .mode = WriteMode::Set,
              .span = {},
              .strides = {}};
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
  HP_CHECK(stride == element_count(tensor), "a whole tensor of `" + table.name + "`");
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

// Calls body(cell) for every rectangle of one rank's home; views are (tensor, home).
template <class Body>
void for_each_cell(const Setting& setting, const Alloc& home, const Region& region,
                   const Patch& tensor, const Body& body) {
  const std::vector<Patch> patches = patches_of_region(setting, home, region);
  const Participant parts[] = {
      {.buffer = home.buffer, .axes = all_axes(tensor), .patches = {tensor}},
      {.buffer = home.buffer, .axes = all_axes(tensor), .patches = patches}};
  for (const Patch& patch : patches) {
    for (const Cell& cell : cut(patch.span, parts, {}, std::nullopt)) body(cell);
  }
}

int buffer_index(const Setting& setting, const std::string& buffer) {
  const int index = setting.blocks.find_buffer(buffer);
  HP_CHECK(index >= 0, "buffer `" + buffer + "`");
  return index;
}

void assign_now(Assign assign) {
  TaskWork work;
  work.actions.emplace_back(std::move(assign));
  run(work);
}

// Whether two views hold the same bits.
bool equal_bits(const Cell& cell) {
  const Rows rows = make_assign(cell, cell.views[0], cell.views[1]).rows;
  const std::int64_t size = size_in_bytes(cell.views[0].dtype);
  bool equal = true;
  rows.for_each([&](const auto& walk) {
    equal = equal && std::memcmp(cell.views[0].data + walk.offset(0) * size,
                                 cell.views[1].data + walk.offset(1) * size,
                                 static_cast<std::size_t>(rows.length() * size)) == 0;
  });
  return equal;
}

}  // namespace

void scatter(const Setting& setting, const std::string& buffer, const HostTensor& tensor) {
  const int index = buffer_index(setting, buffer);
  const BufferTable& table = setting.blocks.buffers()[static_cast<std::size_t>(index)];
  HostTensor rounded = convert(tensor, table.dtype);
  const Patch whole = whole_tensor(setting.blocks, table, rounded);
  for (const Alloc& alloc : setting.plan.allocs) {
    if (alloc.level != Level::Home || alloc.buffer != buffer) continue;
    for_each_cell(
        setting, alloc, setting.blocks.home(index, alloc.rank), whole,
        [](const Cell& cell) { assign_now(make_assign(cell, cell.views[1], cell.views[0])); });
  }
}

HostTensor gather_part(const Setting& setting, const std::string& buffer, std::int64_t part) {
  const int index = buffer_index(setting, buffer);
  const BufferTable& table = setting.blocks.buffers()[static_cast<std::size_t>(index)];
  const Buffer* declared = find_buffer(setting.plan.program, buffer);
  HostTensor tensor = make_tensor(table.dtype, shape_of(setting.plan.program, *declared));
  const Patch whole = whole_tensor(setting.blocks, table, tensor);
  std::set<Region> gathered;  // homes are equal or disjoint: digits are pinned to coordinates
  std::int64_t elements = 0;
  for (const Alloc& alloc : setting.plan.allocs) {
    if (alloc.level != Level::Home || alloc.buffer != buffer) continue;
    if (setting.blocks.coordinate(alloc.rank, table.partial_axes) != part) continue;
    const Region region = setting.blocks.home(index, alloc.rank);
    const bool is_new = gathered.insert(region).second;
    for_each_cell(setting, alloc, region, whole, [&](const Cell& cell) {
      if (is_new) {
        assign_now(make_assign(cell, cell.views[0], cell.views[1]));
        std::int64_t volume = 1;
        for (const Interval& span : cell.span) volume *= span.size();
        elements += volume;
      } else {
        HP_CHECK(equal_bits(cell), "homes of `" + buffer + "` on several ranks are equal, rank " +
                                       std::to_string(alloc.rank.value) + " included");
      }
    });
  }
  HP_CHECK(elements == element_count(tensor), "the homes of `" + buffer + "` hold all of it");
  return tensor;
}

HostTensor gather(const Setting& setting, const std::string& buffer) {
  const BufferTable& table =
      setting.blocks.buffers()[static_cast<std::size_t>(buffer_index(setting, buffer))];
  if (table.partial_axes.empty()) return gather_part(setting, buffer, 0);
  return combine_parts(setting, buffer);
}

}  // namespace harpe::cpu
