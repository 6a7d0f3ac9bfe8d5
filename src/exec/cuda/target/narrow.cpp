#include "exec/cuda/target/narrow.h"

#include <algorithm>

#include "exec/cuda/kernels/loop_nests.h"
#include "support/check.h"

namespace harpe::cuda {

NarrowStates NarrowStates::of(const Plan& plan, const actions::Bases& bases,
                              const std::vector<AllocId>& allocs) {
  NarrowStates narrow;
  for (const AllocId id : allocs) {
    const Alloc& alloc = plan.allocs[id.index()];
    const DeviceAddress begin = address_of(bases.address(alloc));
    const DType dtype = find_buffer(plan.program, alloc.buffer)->dtype;
    narrow.states_.push_back(
        {.partial = {.memory = range_of(begin, alloc.bytes), .element = half_of(dtype)},
         .dtype = dtype});
  }
  return narrow;
}

void NarrowStates::leave(LaunchSpecs& launches) const {
  for (LaunchSpec& launch : launches) {
    std::ranges::any_of(
        states_, [&](const State& state) { return launch->store_in_16_bits(state.partial); });
  }
}

void NarrowStates::read(actions::Action& action) const {
  auto* const move = std::get_if<actions::Assign>(&action);
  if (move == nullptr || move->from.dtype != DType::F32) return;
  const DeviceAddress from = address_of(move->from.data);
  for (const State& state : states_) {
    const std::optional<DeviceAddress> there = state.partial.find(from);
    if (!there) continue;
    HP_CHECK(move->to.dtype == state.dtype, "who reads a narrow state rounds it");
    move->from.data = pointer_to<std::byte>(*there);
    move->from.dtype = state.dtype;
    return;
  }
}

}  // namespace harpe::cuda
