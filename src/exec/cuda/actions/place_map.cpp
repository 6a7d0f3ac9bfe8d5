#include "exec/cuda/actions/place_map.h"

#include <algorithm>
#include <functional>

#include "exec/cuda/actions/loop_nests.h"

namespace harpe::cuda {
namespace {

// How far apart `count` places come to lie that were a stride apart; none where not equally far.
std::optional<std::int64_t> moved_stride(const PlaceMap& map, std::int64_t first,
                                         const Extent& extent) {
  if (extent.count == 1) return extent.stride;
  const std::optional<std::int64_t> start = map.to(first);
  const std::optional<std::int64_t> next = map.to(first + extent.stride);
  if (!start || !next) return std::nullopt;
  const std::int64_t step = *next - *start;
  for (std::int64_t i = 2; i < extent.count; ++i) {
    if (map.to(first + i * extent.stride) != *start + i * step) return std::nullopt;
  }
  return step;
}

// Where the map's source has the address, if it moves that.
std::optional<std::int64_t> place_in(const PlaceMap& map, DeviceAddress address) {
  const DeviceAddress base = address_of(map.source().data);
  const auto size = static_cast<DeviceAddress>(size_in_bytes(map.source().dtype));
  if (address < base || (address - base) % size != 0) return std::nullopt;
  const auto first = static_cast<std::int64_t>((address - base) / size);
  if (!map.to(first)) return std::nullopt;
  return first;
}

std::optional<MovedArray> move_array(const PlaceMap& map, std::int64_t first,
                                     std::span<const Extent> extents) {
  MovedArray array{.map = &map, .address = 0, .strides = {}};
  std::int64_t last = first;
  std::int64_t last_there = map.to(first).value_or(0);
  for (const Extent& extent : extents) {
    const std::optional<std::int64_t> stride = moved_stride(map, first, extent);
    if (!stride) return std::nullopt;
    array.strides.push_back(*stride);
    last += (extent.count - 1) * extent.stride;
    last_there += (extent.count - 1) * *stride;
  }
  if (map.to(last) != last_there) return std::nullopt;
  const actions::View& target = map.target();
  array.address = address_of(target.data) +
                  static_cast<DeviceAddress>(*map.to(first) * size_in_bytes(target.dtype));
  return array;
}

}  // namespace

PlaceMap::PlaceMap(const actions::Assign& move, Way way)
    : source_(way == Way::Along ? &move.from : &move.to),
      target_(way == Way::Along ? &move.to : &move.from),
      elements_(move.rows.count() * move.rows.length() * move.slots.capacity) {
  const std::size_t to = way == Way::Along ? 0 : 1;
  if (move.slots.capacity > 1) {
    loops_.push_back({.length = move.slots.capacity,
                      .to = move.slots.strides[to],
                      .from = move.slots.strides[1 - to]});
  }
  for (std::size_t loop = 0; loop < move.rows.loops().size(); ++loop) {
    loops_.push_back({.length = move.rows.loops()[loop],
                      .to = move.rows.strides(to)[loop],
                      .from = move.rows.strides(1 - to)[loop]});
  }
  loops_.push_back({.length = move.rows.length(), .to = 1, .from = 1});
  std::ranges::stable_sort(loops_, std::greater(), &Loop::from);
}

std::optional<std::int64_t> PlaceMap::to(std::int64_t from) const {
  std::int64_t to = 0;
  if (from < 0) return std::nullopt;
  for (const Loop& loop : loops_) {
    if (loop.from == 0) return std::nullopt;
    const std::int64_t turn = from / loop.from;
    if (turn >= loop.length) return std::nullopt;
    to += turn * loop.to;
    from -= turn * loop.from;
  }
  if (from != 0) return std::nullopt;
  return to;
}

bool is_moved(std::span<const PlaceMap> maps, DeviceAddress address) {
  return std::ranges::any_of(
      maps, [&](const PlaceMap& map) { return place_in(map, address).has_value(); });
}

std::optional<MovedArray> find_moved(std::span<const PlaceMap> maps, DeviceAddress address,
                                     std::span<const Extent> extents) {
  for (const PlaceMap& map : maps) {
    if (const auto first = place_in(map, address)) return move_array(map, *first, extents);
  }
  return std::nullopt;
}

}  // namespace harpe::cuda
