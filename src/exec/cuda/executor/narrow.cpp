#include "exec/cuda/executor/narrow.h"

#include <algorithm>
#include <optional>

#include "exec/cuda/actions/loop_nests.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kShrink = 2;  // f32 to 16 bits

bool refers_to(const std::vector<Ref>& refs, AllocId alloc) {
  return std::ranges::any_of(refs, [&](const Ref& ref) { return ref.alloc == alloc; });
}

// Takes the states block by block, and rounds each as it takes it.
bool rounds(const Plan& plan, const Task& task, AllocId states, DType dtype) {
  const bool is_exchange =
      task.kind == TaskKind::Collective && task.collective != CollectiveOp::ReduceScatter;
  const bool moves = task.kind == TaskKind::Copy || is_exchange ||
                     (task.kind == TaskKind::Finalise && task.reads.size() == task.writes.size());
  if (!moves || task.via == Via::Proxy) return false;
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const Alloc& to = plan.allocs[task.writes[i].alloc.index()];
    if (task.reads[i].alloc == states && to.dtype != dtype) return false;
  }
  return true;
}

bool is_rounded(const Plan& plan, AllocId id) {
  const Alloc& alloc = plan.allocs[id.index()];
  const DType dtype = find_buffer(plan.program, alloc.buffer)->dtype;
  if (alloc.level != Level::Acc || alloc.dtype != DType::F32 || !half_of(dtype)) return false;
  bool crosses = false;
  for (const Task& task : plan.tasks) {
    if (refers_to(task.writes, id) && task.kind != TaskKind::Compute) return false;
    if (!refers_to(task.reads, id)) continue;
    if (!rounds(plan, task, id, dtype)) return false;
    crosses = crosses || task.kind != TaskKind::Finalise;
  }
  return crosses;
}

}  // namespace

std::vector<AllocId> find_rounded_states(const Plan& plan) {
  std::vector<AllocId> found;
  for (std::size_t i = 0; i < plan.allocs.size(); ++i) {
    const AllocId id(static_cast<std::int64_t>(i));
    if (is_rounded(plan, id)) found.push_back(id);
  }
  return found;
}

Checked<NarrowStates> NarrowStates::find(const Plan& plan, const std::vector<std::byte*>& arenas,
                                         int multiprocessors, const LaunchesOf& launches) {
  NarrowStates narrow;
  for (const AllocId id : find_rounded_states(plan)) {
    const Alloc& alloc = plan.allocs[id.index()];
    const DeviceAddress begin = reinterpret_cast<DeviceAddress>(arenas[alloc.rank.index()]) +
                                static_cast<DeviceAddress>(alloc.offset);
    const State state{.alloc = id,
                      .begin = begin,
                      .end = begin + static_cast<DeviceAddress>(alloc.bytes),
                      .dtype = find_buffer(plan.program, alloc.buffer)->dtype};
    bool can = true;
    for (std::size_t i = 0; can && i < plan.tasks.size(); ++i) {
      if (!refers_to(plan.tasks[i].writes, id)) continue;
      HP_TRY(std::vector<LaunchSpec> made, launches(TaskId(static_cast<std::int64_t>(i))));
      can = std::ranges::all_of(made, [&](LaunchSpec& launch) {
        return leave(state, launch) && check(launch, multiprocessors).ok();
      });
    }
    if (can) narrow.states_.push_back(state);
  }
  return narrow;
}

std::vector<AllocId> NarrowStates::allocs() const {
  std::vector<AllocId> allocs;
  for (const State& state : states_) allocs.push_back(state.alloc);
  return allocs;
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
