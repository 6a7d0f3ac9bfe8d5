#include "exec/cuda/group/bindings.h"

#include <algorithm>

namespace harpe::cuda {
namespace {

constexpr DeviceAddress kUnknown = ~DeviceAddress{0};

}  // namespace

Checked<Bindings> Bindings::make(const Stream& stream, CapturedTwice captured,
                                 std::vector<AddressRange>& homes) {
  HP_TRY(Relocation relocation, Relocation::find(stream.device(), captured, homes));
  std::vector<DeviceAddress> captured_at;
  for (const AddressRange& home : homes) captured_at.push_back(home.begin);
  Bindings bindings(std::move(captured.graph), std::move(relocation));
  for (std::size_t i = 0; i < kMost; ++i) {
    HP_TRY(Graph graph, bindings.captured_.instantiate());
    HP_REQUIRE_OK(graph.upload(stream));
    bindings.slots_.push_back({.addresses = captured_at, .graph = std::move(graph)});
  }
  const Result<Ok, CudaError> uploaded = stream.synchronize();
  if (!uploaded.ok()) return to_diag(uploaded.error());
  return bindings;
}

const Graph* Bindings::find(std::span<const DeviceAddress> addresses) {
  const auto slot = std::ranges::find_if(
      slots_, [&](const Slot& each) { return std::ranges::equal(each.addresses, addresses); });
  if (slot == slots_.end()) return nullptr;
  slot->last_use = ++uses_;
  return &slot->graph;
}

Checked<const Graph*> Bindings::add(std::span<const DeviceAddress> addresses) {
  Slot& slot = *std::ranges::min_element(slots_, {}, &Slot::last_use);
  const Result<Ok, CudaError> moved = relocation_.move(slot.graph, slot.addresses, addresses);
  if (!moved.ok()) {
    // Only some of its nodes were changed, so the next use must change all of them.
    std::ranges::fill(slot.addresses, kUnknown);
    return to_diag(moved.error());
  }
  slot.addresses.assign(addresses.begin(), addresses.end());
  slot.last_use = ++uses_;
  return &slot.graph;
}

Result<Ok, CudaError> Bindings::add_to_capture(std::span<const DeviceAddress> addresses,
                                               CUstream stream) {
  const std::vector<DeviceAddress> from(addresses.size(), kUnknown);
  HP_REQUIRE_OK(relocation_.move_captured(from, addresses));
  return captured_.add_to_capture(stream);
}

}  // namespace harpe::cuda
