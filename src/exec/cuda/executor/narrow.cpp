#include "exec/cuda/executor/narrow.h"

#include <algorithm>
#include <optional>

#include "exec/cuda/kernels/loop_nests.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kShrink = 2;  // f32 to 16 bits

}  // namespace

NarrowStates NarrowStates::of(const Plan& plan, const std::vector<std::byte*>& arenas,
                              const std::vector<AllocId>& allocs) {
  NarrowStates narrow;
  for (const AllocId alloc : allocs) narrow.states_.push_back(state_of(plan, arenas, alloc));
  return narrow;
}

NarrowStates::State NarrowStates::state_of(const Plan& plan, const std::vector<std::byte*>& arenas,
                                           AllocId id) {
  const Alloc& alloc = plan.allocs[id.index()];
  const DeviceAddress begin = reinterpret_cast<DeviceAddress>(arenas[alloc.rank.index()]) +
                              static_cast<DeviceAddress>(alloc.offset);
  return {.alloc = id,
          .begin = begin,
          .end = begin + static_cast<DeviceAddress>(alloc.bytes),
          .dtype = find_buffer(plan.program, alloc.buffer)->dtype};
}

bool NarrowStates::leave(const State& state, LaunchSpec& launch) {
  const auto place = [&](DeviceAddress address) -> std::optional<DeviceAddress> {
    if (address < state.begin || address >= state.end) return std::nullopt;
    return state.begin + (address - state.begin) / kShrink;
  };
  if (auto* const heads = std::get_if<AttentionSpec>(&launch)) {
    const bool fits = heads->to_state && !heads->carried && heads->panels.size() == 1 &&
                      heads->element == half_of(state.dtype);
    const auto there = place(heads->panels.front().output.address);
    if (!fits || !there) return false;
    heads->panels.front().output.address = *there;
    heads->to_state = false;
    return true;
  }
  auto* const product = std::get_if<GemmSpec>(&launch);
  if (product == nullptr || product->add || product->out != device::Element::F32 ||
      product->in != half_of(state.dtype) || product->panels.size() != 1) {
    return false;
  }
  const auto there = place(product->panels.front().c);
  if (!there) return false;
  product->panels.front().c = *there;
  product->out = product->in;
  return true;
}

void NarrowStates::leave(std::vector<LaunchSpec>& launches) const {
  for (LaunchSpec& launch : launches) {
    std::ranges::any_of(states_, [&](const State& state) { return leave(state, launch); });
  }
}

void NarrowStates::read(actions::Action& action) const {
  auto* const move = std::get_if<actions::Assign>(&action);
  if (move == nullptr || move->from.dtype != DType::F32) return;
  const auto from = reinterpret_cast<DeviceAddress>(move->from.data);
  const auto state = std::ranges::find_if(
      states_, [&](const State& one) { return from >= one.begin && from < one.end; });
  if (state == states_.end()) return;
  HP_CHECK(move->to.dtype == state->dtype, "who reads a narrow state rounds it");
  move->from.data = reinterpret_cast<std::byte*>(state->begin + (from - state->begin) / kShrink);
  move->from.dtype = state->dtype;
}

}  // namespace harpe::cuda
