#include "launch/partials16.h"

#include <algorithm>
#include <optional>
#include <span>

#include "plan/refs.h"

namespace harpe::launch {
namespace {

using Users = std::vector<std::vector<TaskId>>;  // by allocation

// True if the task copies or rounds the states block by block and stores them as `dtype`.
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

class PartialFinder {
 public:
  PartialFinder(const Plan& plan, Offers& offers)
      : plan_(plan), offers_(offers), readers_(plan.allocs.size()), writers_(plan.allocs.size()) {
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      const TaskId id(static_cast<std::int64_t>(i));
      for (const Ref& ref : plan.tasks[i].reads) readers_[ref.alloc.index()].push_back(id);
      for (const Ref& ref : plan.tasks[i].writes) writers_[ref.alloc.index()].push_back(id);
    }
  }

  Checked<std::vector<AllocId>> find() const {
    std::vector<AllocId> found;
    for (std::size_t i = 0; i < plan_.allocs.size(); ++i) {
      const AllocId id(static_cast<std::int64_t>(i));
      if (!is_rounded_by_all(id)) continue;
      HP_TRY(const bool can, can_be_stored(id));
      if (can) found.push_back(id);
    }
    return found;
  }

 private:
  [[nodiscard]] const Task& task(TaskId id) const { return plan_.tasks[id.index()]; }
  [[nodiscard]] DType final_type(AllocId id) const {
    return find_buffer(plan_.program, plan_.allocs[id.index()].buffer)->dtype;
  }

  [[nodiscard]] bool is_rounded_by_all(AllocId id) const {
    const Alloc& alloc = plan_.allocs[id.index()];
    const DType dtype = final_type(id);
    const bool is_half = dtype == DType::BF16 || dtype == DType::F16;
    if (alloc.level != Level::Acc || alloc.dtype != DType::F32 || !is_half) return false;
    const bool is_made = std::ranges::all_of(writers_[id.index()], [&](TaskId writer) {
      return task(writer).kind == TaskKind::Compute;
    });
    bool crosses = false;
    for (const TaskId reader : readers_[id.index()]) {
      if (!rounds(plan_, task(reader), id, dtype)) return false;
      crosses = crosses || task(reader).kind != TaskKind::Finalise;
    }
    return is_made && crosses;
  }

  Checked<bool> can_be_stored(AllocId id) const {
    for (const TaskId writer : writers_[id.index()]) {
      HP_TRY(const std::span<const Kernel> kernels, offers_.kernels_of(writer));
      const Launch launch{
          .rank = rank_of(plan_, writer), .queue = task(writer).queue, .does = {writer}};
      for (const Kernel& kernel : kernels) {
        const std::optional<Kernel> rounding = store_rounded(id, kernel);
        if (!rounding || !offers_.choose(launch, *rounding)) return false;
      }
    }
    return true;
  }

  // None where the kernel continues a state, adds to memory, or has operands of another type.
  [[nodiscard]] std::optional<Kernel> store_rounded(AllocId id, const Kernel& kernel) const {
    if (kernel.panels.size() != 1) return std::nullopt;
    const Panel& panel = kernel.panels.front();
    const std::vector<Place>& operands = kernel.arrivals.front().reads;
    const bool fits = !panel.adds && panel.dtype == DType::F32 && panel.reads.size() < 2 &&
                      !panel.stores.empty() && panel.stores.front().alloc == id &&
                      !operands.empty() &&
                      plan_.allocs[operands.front().alloc.index()].dtype == final_type(id);
    if (!fits) return std::nullopt;
    Kernel rounding = kernel;
    rounding.panels.front().dtype = final_type(id);
    return rounding;
  }

  const Plan& plan_;
  Offers& offers_;
  Users readers_;
  Users writers_;
};

}  // namespace

Checked<std::vector<AllocId>> find_partials16(const Plan& plan, Offers& offers) {
  return PartialFinder(plan, offers).find();
}

}  // namespace harpe::launch
