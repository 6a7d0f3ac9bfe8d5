#include "library/homes.h"

#include <span>
#include <utility>

#include "ir/axis_layout.h"
#include "ir/blocks.h"
#include "library/dtypes.h"
#include "support/check.h"

namespace harpe::library {
namespace {

using Ranges = std::vector<v1::Range>;

// Positions along a row-major product of axes: `outer` for all axes but the last, `inner` for the
// last.
Ranges multiply(const Ranges& outer, const std::vector<Interval>& inner, std::int64_t size) {
  Ranges out;
  const auto add = [&](const v1::Range& range) {
    if (!out.empty() && out.back().end == range.begin) {
      out.back().end = range.end;
    } else {
      out.push_back(range);
    }
  };
  const bool is_whole = inner == std::vector<Interval>{{0, size}};
  for (const v1::Range& range : outer) {
    if (is_whole) {
      add({range.begin * size, range.end * size});
      continue;
    }
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      for (const Interval& each : inner) add({i * size + each.begin, i * size + each.end});
    }
  }
  return out;
}

// Per dimension, the indices of a rank's home.
std::vector<Ranges> home_ranges(const Blocks& blocks, const BufferTable& table,
                                const Region& home) {
  std::vector<Ranges> dims;
  std::size_t digit = 0;  // a buffer's digits are those of its axes, one axis after the other
  for (const DimTable& dim : table.dims) {
    Ranges ranges = {{0, dim.axes.empty() ? dim.opaque : 1}};
    for (const int axis : dim.axes) {
      const AxisTable& along = blocks.axes()[static_cast<std::size_t>(axis)];
      const std::span values = std::span(home).subspan(digit, along.digits.size());
      ranges = multiply(ranges, positions_in(blocks, axis, values), along.size);
      digit += along.digits.size();
    }
    dims.push_back(std::move(ranges));
  }
  return dims;
}

// Every choice of one range per dimension, the last dimension fastest.
std::vector<v1::Rectangle> make_rectangles(const std::vector<Ranges>& dims) {
  std::vector<v1::Rectangle> out = {{}};
  for (const Ranges& ranges : dims) {
    std::vector<v1::Rectangle> wider;
    for (const v1::Rectangle& rectangle : out) {
      for (const v1::Range& range : ranges) {
        wider.push_back(rectangle);
        wider.back().push_back(range);
      }
    }
    out = std::move(wider);
  }
  return out;
}

v1::Buffer make_buffer(const Plan& plan, const Blocks& blocks, const Buffer& declared) {
  const int index = blocks.find_buffer(declared.name);
  const BufferTable& table = blocks.buffers()[static_cast<std::size_t>(index)];
  v1::Buffer buffer{
      .name = declared.name,
      .role = declared.role == Role::In ? v1::Buffer::Role::In : v1::Buffer::Role::Out,
      .dtype = public_dtype(declared.dtype),
      .shape = shape_of(plan.program, declared),
      .homes = {},
      .partial = !table.partial_axes.empty()};
  for (std::int64_t rank = 0; rank < blocks.ranks(); ++rank) {
    const Region home = blocks.home(index, RankId(rank));
    buffer.homes.push_back(make_rectangles(home_ranges(blocks, table, home)));
  }
  return buffer;
}

Blocks blocks_of(const Plan& plan) {
  harpe::Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), "the form of a plan has blocks: " + render(blocks.error()));
  return *std::move(blocks);
}

}  // namespace

std::vector<v1::Buffer> list_buffers(const Plan& plan) {
  const Blocks blocks = blocks_of(plan);
  std::vector<v1::Buffer> buffers;
  for (const Role role : {Role::In, Role::Out}) {
    for (const Buffer* const buffer : buffers_of(plan.program)) {
      if (buffer->role == role) buffers.push_back(make_buffer(plan, blocks, *buffer));
    }
  }
  return buffers;
}

std::map<std::string, std::string> list_layouts(const Plan& plan) {
  std::map<std::string, std::string> layouts;
  for (const HeldAxis& held : find_held_axes(plan.program, blocks_of(plan))) {
    layouts.emplace(held.axis, print(held.layout));
  }
  return layouts;
}

}  // namespace harpe::library
