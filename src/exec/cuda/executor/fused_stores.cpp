#include "exec/cuda/executor/fused_stores.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/actions/fuse_stores.h"
#include "exec/describe.h"
#include "plan/refs.h"

namespace harpe::cuda {

void FusedStores::fuse(UnitSpec& unit, const std::map<TaskId, TaskId>& next) const {
  const auto* const spec =
      unit.launches.size() == 1 ? std::get_if<GemmSpec>(&unit.launches.front()) : nullptr;
  if (spec == nullptr) return;
  std::vector<TaskId> copies;
  std::vector<Transfer> transfers;
  auto behind = next.find(unit.tasks.back());
  for (; behind != next.end() && can_leave(behind->second); behind = next.find(behind->second)) {
    const TaskId copy = behind->second;
    Transfer transfer{.moves = specs_[copy.index()].actions, .raise = {}};
    for (const Raise& raise : wiring_of(copy).raises) transfer.raise = signals_.target(copy, raise);
    copies.push_back(copy);
    transfers.push_back(transfer);
  }
  if (copies.empty()) return;
  std::optional<StoringGemms> stored = fuse_stores(*spec, transfers);
  if (!stored) return;
  stored->leaving.wait = signals_.context;
  stored->leaving.wait.task = static_cast<std::uint32_t>(unit.tasks.front().value);
  unit.tasks.insert(unit.tasks.end(), copies.begin(), copies.end());
  unit.silent.insert(unit.silent.end(), copies.begin(), copies.end());
  for (const TaskId copy : copies) {
    const std::vector<std::int32_t>& signals = wiring_of(copy).waits;
    unit.awaited.insert(unit.awaited.end(), signals.begin(), signals.end());
  }
  unit.launches = {std::move(stored->leaving)};
  if (!stored->staying) return;
  if (behind != next.end() && takes_total(unit, *stored->staying, behind->second)) return;
  unit.launches.emplace_back(*std::move(stored->staying));
}

// Nothing but a transfer of what nobody else reads, which waits for beginnings alone, and for which
// one waits at most.
bool FusedStores::can_leave(TaskId copy) const {
  const Task& task = plan_.tasks[copy.index()];
  const TaskWiring& wiring = wiring_of(copy);
  return task.kind == TaskKind::Copy && task.via == Via::Sm &&
         waits_for_entries(plan_, wiring_, copy) && wiring.after.empty() &&
         wiring.raises.size() <= 1 && std::ranges::none_of(wiring.raises, &Raise::is_posted) &&
         std::ranges::all_of(task.reads, [&](const Ref& ref) { return is_sole_reader(copy, ref); });
}

bool FusedStores::is_sole_reader(TaskId copy, const Ref& ref) const {
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    if (i == copy.index()) continue;
    const bool reads = std::ranges::any_of(plan_.tasks[i].reads,
                                           [&](const Ref& other) { return meet(ref, other); });
    if (reads) return false;
  }
  return true;
}

// The kernel waits inside for what others store: where ranks share a GPU, theirs could not run.
bool FusedStores::takes_total(UnitSpec& unit, GemmSpec staying, TaskId finalise) const {
  const Task& task = plan_.tasks[finalise.index()];
  if (!signals_.is_alone || task.kind != TaskKind::Finalise || !wiring_of(finalise).after.empty()) {
    return false;
  }
  std::set<std::int32_t> awaited;
  const ReadyAt ready = [&](DeviceAddress address) -> std::optional<device::FlagWait> {
    const std::optional<std::int32_t> signal = signal_of(finalise, address);
    if (!signal) return std::nullopt;
    awaited.insert(*signal);
    return signals_.waits[static_cast<std::size_t>(*signal)];
  };
  if (!sum_at_home(staying, specs_[finalise.index()].actions, ready)) return false;
  const std::vector<std::int32_t>& signals = wiring_of(finalise).waits;
  if (!std::ranges::all_of(signals,
                           [&](std::int32_t signal) { return awaited.contains(signal); })) {
    return false;
  }
  auto& leaving = std::get<GemmSpec>(unit.launches.front());
  leaving.panels.insert(leaving.panels.end(), staying.panels.begin(), staying.panels.end());
  unit.tasks.push_back(finalise);
  unit.joined.push_back(finalise);
  return true;
}

std::optional<std::int32_t> FusedStores::signal_of(TaskId finalise, DeviceAddress address) const {
  const RankId rank = rank_of(plan_, finalise);
  std::optional<std::int32_t> found;
  for (const Ref& ref : plan_.tasks[finalise.index()].reads) {
    const Alloc& alloc = plan_.allocs[ref.alloc.index()];
    const DeviceAddress begin = signals_.arena + static_cast<DeviceAddress>(alloc.offset);
    if (address < begin || address >= begin + static_cast<DeviceAddress>(alloc.bytes)) continue;
    for (const std::int32_t signal : wiring_of(finalise).waits) {
      const PageSignal& what = wiring_.pages[rank.index()][static_cast<std::size_t>(signal)];
      const bool fills = std::ranges::any_of(what.producers, [&](TaskId from) {
        return std::ranges::any_of(plan_.tasks[from.index()].writes,
                                   [&](const Ref& to) { return meet(to, ref); });
      });
      if (!fills) continue;
      if (found) return std::nullopt;
      found = signal;
    }
  }
  return found;
}

}  // namespace harpe::cuda
