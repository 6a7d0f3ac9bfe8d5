#include <algorithm>
#include <utility>

#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

// The number of thread blocks that make a kernel's copies. It is even, because clusters are pairs.
std::int32_t count_blocks(const NormalForm& form, std::int32_t otherwise) {
  std::int64_t blocks = otherwise;
  for (const NestForm& nest : form.nests) {
    for (const NestItem& item : nest.items) {
      const auto* const move = std::get_if<Move>(&item);
      if (move != nullptr && move->transport() == Via::Tma) blocks = move->sm.value_or(otherwise);
    }
  }
  return static_cast<std::int32_t>((blocks + 1) / 2 * 2);
}

class CopyFuser {
 public:
  explicit CopyFuser(Draft& draft)
      : draft_(draft), blocks_(count_blocks(draft.plan.form, draft.target.copy_blocks)) {
    copies_.resize(static_cast<std::size_t>(draft.plan.mesh.ranks()));
    for (std::size_t i = 0; i < draft.plan.tasks.size(); ++i) {
      const TaskId id(static_cast<std::int64_t>(i));
      if (sync::count_chunks(draft.task(id), draft.target.chunk_bytes) > 0) {
        copies_[rank_of(draft.plan, id).index()].push_back(id);
      }
    }
  }

  void fuse(std::size_t at) {
    Step& step = draft_.steps[at];
    const std::vector<TaskId>& copies = copies_[step.launch.rank.index()];
    if (copies.empty() || !can_fuse(at, copies)) return;
    Launch proposed = proposal(step.launch);
    proposed.does.insert(proposed.does.begin() + 1, copies.begin(), copies.end());
    proposed.reserved_sms = draft_.target.sms_for_kernels;
    Kernel kernel = step.launch.kernels.front();
    kernel.copy_blocks = blocks_;
    for (const TaskId copy : copies) {
      const std::optional<FusedCopy> fused = fused_copy(copy);
      if (!fused) return draft_.refuse(proposed.does.front(), Reason::CopyNotFree, copy.value);
      kernel.fused_copies.push_back(*fused);
    }
    const std::optional<std::string> variant = draft_.offers.choose(proposed, kernel);
    if (!variant) {
      return draft_.refuse(proposed.does.front(), Reason::NoKernel,
                           static_cast<std::int64_t>(kernel.panels.size()),
                           static_cast<std::int64_t>(kernel.arrivals.size()));
    }
    const auto waiting = std::ranges::find_if(
        copies, [&](TaskId copy) { return !draft_.wiring_of(copy).waits.empty(); });
    if (waiting != copies.end() && !may_wait_for_others(kernel, *variant)) {
      return draft_.refuse(proposed.does.front(), Reason::CopyNotFree, waiting->value);
    }
    step.launch.kernels.front() = std::move(kernel);
    accept(at, copies);
  }

 private:
  [[nodiscard]] bool can_fuse(std::size_t at, const std::vector<TaskId>& copies) {
    const TaskId first = draft_.steps[at].launch.does.front();
    if (!begins_at_once(first)) {
      draft_.refuse(first, Reason::NotFirst, first.value);
      return false;
    }
    if (draft_.target.shares_sms) {
      draft_.refuse(first, Reason::SharedSms);
      return false;
    }
    const auto begun = std::ranges::find_if(
        copies, [&](TaskId copy) { return draft_.step_at[copy.index()] <= at; });
    if (begun == copies.end()) return true;
    draft_.refuse(first, Reason::CopiesBegun, begun->value);
    return false;
  }

  // Waits before the kernel may delay only its stores, which holds if bound_epochs can move them
  // inside.
  [[nodiscard]] bool may_wait_for_others(const Kernel& kernel, const std::string& variant) const {
    Kernel chosen = kernel;
    chosen.variant = variant;
    return draft_.offers.bounds_epochs(chosen);
  }

  [[nodiscard]] bool is_behind_entry(TaskId id) const {
    return std::ranges::all_of(draft_.wiring_of(id).after, [&](TaskId from) {
      return draft_.task(from).kind == TaskKind::Entry;
    });
  }

  // Only the Entry precedes the task, in its queue or by an event.
  [[nodiscard]] bool begins_at_once(TaskId id) const {
    return draft_.is_first[id.index()] && is_behind_entry(id);
  }

  // None where a task makes what the copy reads, or the copy is not one dense rectangle.
  [[nodiscard]] std::optional<FusedCopy> fused_copy(TaskId copy) const {
    const Task& task = draft_.task(copy);
    const sync::TaskWiring& wiring = draft_.wiring_of(copy);
    const auto is_input = [&](const Ref& ref) {
      const Alloc& from = draft_.alloc_of(ref);
      return from.level == Level::Home &&
             find_buffer(draft_.plan.program, from.buffer)->role == Role::In;
    };
    const bool is_free = sync::waits_for_entries(draft_.plan, draft_.wiring, copy) &&
                         wiring.raises.size() == 1 && !wiring.raises.front().is_posted &&
                         is_behind_entry(copy) && task.reads.size() == 1 &&
                         is_input(task.reads.front()) && draft_.is_by_engine[copy.index()];
    if (!is_free) return std::nullopt;
    const auto from = draft_.layouts.place_of(task.reads.front());
    const auto to = draft_.layouts.place_of(task.writes.front());
    if (!from || !to) return std::nullopt;
    return FusedCopy{
        .from = *from, .to = *to, .raises = draft_.raise_of(wiring.raises.front()).signal};
  }

  // Inserts the copies behind the first task, which determines the queue, and before the last,
  // which other launches follow.
  void accept(std::size_t at, const std::vector<TaskId>& copies) {
    std::vector<TaskId>& does = draft_.steps[at].launch.does;
    const std::size_t members = does.size();
    for (const TaskId copy : copies) {
      Launch& own = draft_.step_of(copy).launch;
      own.raises.clear();
      std::vector<SignalId>& awaits = draft_.steps[at].launch.awaits;
      awaits.insert(awaits.end(), own.awaits.begin(), own.awaits.end());
      draft_.join(at, draft_.step_at[copy.index()]);
      draft_.silence(copy, at);
    }
    std::rotate(does.begin() + 1, does.begin() + static_cast<std::ptrdiff_t>(members), does.end());
    draft_.applied(does.front());
  }

  Draft& draft_;
  std::int32_t blocks_;
  std::vector<std::vector<TaskId>> copies_;  // by rank
};

}  // namespace

void fuse_copies(Draft& draft) {
  CopyFuser fuser(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    if (draft.steps[at].waits_inside && !draft.steps[at].is_joined) fuser.fuse(at);
  }
}

}  // namespace harpe::launch
