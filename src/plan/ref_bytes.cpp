#include "plan/ref_bytes.h"

#include <algorithm>
#include <cmath>

namespace harpe {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

double size_over(const Program& program, const std::vector<std::string>& axes) {
  double size = 1;
  for (const std::string& name : axes) {
    size *= static_cast<double>(size_of(*find_axis(program, name)));
  }
  return size;
}

// The route whose slots include the axis, or null.
const Route* find_route_over(const Program& program, std::string_view axis) {
  for (const Decl& decl : program.decls) {
    const auto* const route = std::get_if<Route>(&decl);
    if (route != nullptr && std::ranges::find(route->slots, axis) != route->slots.end()) {
      return route;
    }
  }
  return nullptr;
}

}  // namespace

RefBytes::RefBytes(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks) {
  std::map<std::string, BufferShare> known;
  for (const Alloc& alloc : plan.allocs) {
    const auto [found, added] = known.try_emplace(alloc.buffer);
    if (added) found->second = share_of(alloc.buffer);
    shares_.push_back(found->second);
  }
  for (std::size_t axis = 0; axis < blocks.axes().size(); ++axis) {
    std::vector<std::int64_t> sums = {0};
    for (std::int64_t block = 0; block < blocks.axes()[axis].blocks; ++block) {
      sums.push_back(sums.back() + blocks.interval(static_cast<int>(axis), block).size());
    }
    up_to_.push_back(std::move(sums));
  }
}

RefBytes::BufferShare RefBytes::share_of(const std::string& buffer) const {
  BufferShare share{.index = blocks_.find_buffer(buffer)};
  const BufferTable& table = blocks_.buffers()[at(share.index)];
  for (const DimTable& dim : table.dims) share.opaque *= static_cast<double>(dim.opaque);
  for (const int axis : table.axes) {
    const std::string& name = blocks_.axes()[at(axis)].name;
    const Route* const route = find_route_over(plan_.program, name);
    if (route == nullptr || route->slots.back() != name) continue;
    share.occupied = std::min(
        1.0, size_over(plan_.program, route->choices) / size_over(plan_.program, route->slots));
  }
  return share;
}

std::int64_t RefBytes::length(int axis, std::span<const Range> ranges) const {
  const AxisTable& table = blocks_.axes()[at(axis)];
  // Whole digits at the end form one run of blocks per choice of the earlier digits.
  std::size_t cut = ranges.size();
  std::int64_t run = 1;
  while (cut > 0) {
    const std::int32_t extent = blocks_.digits()[at(table.digits[cut - 1])].extent;
    if (ranges[cut - 1] != Range{.lo = 0, .hi = extent}) break;
    run *= extent;
    --cut;
  }
  const std::vector<std::int64_t>& sums = up_to_[at(axis)];
  const auto count = [&](const auto& self, std::size_t digit, std::int64_t prefix) -> std::int64_t {
    if (digit == cut) {
      return sums[static_cast<std::size_t>((prefix + 1) * run)] -
             sums[static_cast<std::size_t>(prefix * run)];
    }
    const std::int32_t extent = blocks_.digits()[at(table.digits[digit])].extent;
    std::int64_t length = 0;
    for (std::int32_t value = ranges[digit].lo; value < ranges[digit].hi; ++value) {
      length += self(self, digit + 1, prefix * extent + value);
    }
    return length;
  };
  return count(count, 0, 0);
}

// The share of a block's tokens that choose an expert with this digit value.
double RefBytes::chosen(const RouteChoice& choice) const {
  const DigitTable& digit = blocks_.digits()[at(blocks_.find_digit(choice.digit))];
  const Route* const route = find_route_over(plan_.program, blocks_.axes()[at(digit.axis)].name);
  if (route == nullptr) return 1;
  const auto choices =
      static_cast<double>(size_of(*find_axis(plan_.program, route->choices.back())));
  return 1 - std::pow(1 - 1.0 / digit.extent, choices);
}

double RefBytes::of(const Ref& ref) const {
  const Alloc& alloc = plan_.allocs[ref.alloc.index()];
  const BufferShare& share = shares_[ref.alloc.index()];
  const BufferTable& table = blocks_.buffers()[at(share.index)];
  double elements = 0;
  for (const Box& box : ref.boxes) {
    double volume = 1;
    std::size_t first = 0;
    for (const int axis : table.axes) {
      const std::size_t digits = blocks_.axes()[at(axis)].digits.size();
      volume *= static_cast<double>(length(axis, std::span(box).subspan(first, digits)));
      first += digits;
    }
    elements += volume;
  }
  const double routed = ref.when ? chosen(*ref.when) : 1;
  return elements * share.opaque * share.occupied * routed *
         static_cast<double>(size_in_bytes(alloc.dtype));
}

}  // namespace harpe
