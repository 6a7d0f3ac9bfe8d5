#include "exec/cuda/group/bindings.h"

#include <algorithm>

namespace harpe::cuda {

Checked<Bindings> Bindings::make(const Device& device, CapturedTwice captured,
                                 std::vector<AddressRange>& homes) {
  HP_TRY(Relocation relocation, Relocation::find(device, captured, homes));
  std::vector<DeviceAddress> captured_at;
  for (const AddressRange& home : homes) captured_at.push_back(home.begin);
  return Bindings(std::move(captured.graph), std::move(relocation), std::move(captured_at));
}

const Graph* Bindings::find(std::span<const DeviceAddress> addresses) {
  const auto slot = std::ranges::find_if(
      slots_, [&](const Slot& each) { return std::ranges::equal(each.addresses, addresses); });
  if (slot == slots_.end()) return nullptr;
  slot->last_use = ++uses_;
  return &slot->graph;
}

Checked<const Graph*> Bindings::add(std::span<const DeviceAddress> addresses) {
  if (slots_.size() < kMost) {
    HP_TRY(Graph graph, captured_.instantiate());
    slots_.push_back({.addresses = captured_at_, .graph = std::move(graph)});
    slots_.back().last_use = 0;
  }
  Slot& slot = *std::ranges::min_element(slots_, {}, &Slot::last_use);
  const Result<Ok, CudaError> moved = relocation_.move(slot.graph, slot.addresses, addresses);
  if (!moved.ok()) {
    // Some of its nodes are changed, others are not.
    slots_.erase(slots_.begin() + (&slot - slots_.data()));
    return to_diag(moved.error());
  }
  slot.addresses.assign(addresses.begin(), addresses.end());
  slot.last_use = ++uses_;
  return &slot.graph;
}

}  // namespace harpe::cuda
