#include <algorithm>
#include <set>
#include <utility>

#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

// Copies of a rank's own inputs within the rank. An input is as constant as its copy.
class InputCopies {
 public:
  explicit InputCopies(Draft& draft) : draft_(draft) {
    by_rank_.resize(static_cast<std::size_t>(draft.plan.mesh.ranks()));
    into_.resize(draft.plan.allocs.size());
    for (std::size_t i = 0; i < draft.plan.tasks.size(); ++i) {
      const TaskId id(static_cast<std::int64_t>(i));
      if (is_input_copy(id)) add(id);
    }
  }

  [[nodiscard]] const std::vector<TaskId>& of(RankId rank) const { return by_rank_[rank.index()]; }

  // The input that one of the copies took the place from, if any did.
  [[nodiscard]] std::optional<Place> source_of(const Place& place) const {
    for (const Taken& taken : into_[place.alloc.index()]) {
      if (contains(taken.span, place.span)) return Place{.alloc = taken.from, .span = place.span};
    }
    return std::nullopt;
  }

 private:
  struct Taken {
    AllocId from;
    Span span;
  };

  [[nodiscard]] bool is_input_copy(TaskId id) const {
    const Task& task = draft_.task(id);
    if (task.kind != TaskKind::Copy || task.reads.size() != task.writes.size()) return false;
    const RankId rank = rank_of(draft_.plan, id);
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const Alloc& from = draft_.alloc_of(task.reads[i]);
      const Alloc& to = draft_.alloc_of(task.writes[i]);
      const bool fits = from.rank == rank && to.rank == rank && from.level == Level::Home &&
                        find_buffer(draft_.plan.program, from.buffer)->role == Role::In &&
                        from.dtype == to.dtype;
      if (!fits) return false;
    }
    return true;
  }

  void add(TaskId id) {
    const Task& task = draft_.task(id);
    by_rank_[rank_of(draft_.plan, id).index()].push_back(id);
    for (std::size_t i = 0; i < task.writes.size(); ++i) {
      for (Span& span : draft_.layouts.of(task.writes[i]).spans()) {
        into_[task.writes[i].alloc.index()].push_back(
            {.from = task.reads[i].alloc, .span = std::move(span)});
      }
    }
  }

  Draft& draft_;
  std::vector<std::vector<TaskId>> by_rank_;
  std::vector<std::vector<Taken>> into_;  // by allocation
};

class InPlaceReader {
 public:
  explicit InPlaceReader(Draft& draft) : draft_(draft), copies_(draft) {}

  void read(std::size_t at) {
    Step& step = draft_.steps[at];
    const TaskId first = step.launch.does.front();
    Kernel kernel = step.launch.kernels.front();
    std::vector<bool> in_place;
    std::size_t operands = 0;  // operands that were copied
    std::size_t wanted = 0;
    for (Arrival& arrival : kernel.arrivals) {
      // A GEMM may read only one operand in place; keys and values belong together.
      const bool is_gemm = kernel.panels.front().reads.empty();
      const std::size_t moved = redirect(arrival);
      in_place.push_back(moved > 0);
      operands += moved;
      wanted += moved > 0 && !is_gemm ? arrival.reads.size() : moved;
    }
    if (operands == 0) return;
    if (operands < wanted || !draft_.offers.choose(step.launch, kernel)) {
      return draft_.refuse(first, Reason::NotInPlace, static_cast<std::int64_t>(wanted),
                           static_cast<std::int64_t>(kernel.arrivals.size()));
    }
    step.launch.kernels.front() = std::move(kernel);
    std::set<std::int32_t> unheard;  // signals that no task waits for any more
    std::vector<TaskId> waiting;
    for (std::size_t i = 0; i < in_place.size(); ++i) {
      const TaskId member = step.waiting[i];
      const std::vector<std::int32_t>& signals = draft_.wiring_of(member).waits;
      if (in_place[i]) {
        unheard.insert(signals.begin(), signals.end());
      } else {
        waiting.push_back(member);
      }
    }
    const std::set<TaskId> members(step.waiting.begin(), step.waiting.end());
    skip_copies(at, members, unheard);
    step.waiting = std::move(waiting);
    draft_.applied(first);
  }

 private:
  // Redirects operands to the inputs that they were copied from. Returns how many it redirected.
  [[nodiscard]] std::size_t redirect(Arrival& arrival) const {
    std::size_t moved = 0;
    for (Place& read : arrival.reads) {
      const std::optional<Place> source = copies_.source_of(read);
      if (!source) continue;
      read = *source;
      ++moved;
    }
    if (moved > 0) arrival.when.reset();
    return moved;
  }

  // Skips copies that only `members` would have read. A skipped copy raises no signal if all of its
  // signals are in `unheard`.
  void skip_copies(std::size_t at, const std::set<TaskId>& members,
                   const std::set<std::int32_t>& unheard) {
    const RankId rank = draft_.steps[at].launch.rank;
    for (const TaskId copy : copies_.of(rank)) {
      const auto is_unread = [&](const Ref& ref) {
        return std::ranges::all_of(draft_.readers[ref.alloc.index()],
                                   [&](TaskId reader) { return members.contains(reader); });
      };
      if (!std::ranges::all_of(draft_.task(copy).writes, is_unread)) continue;
      Launch& launch = draft_.step_of(copy).launch;
      launch.is_skipped = draft_.has_kernels[copy.index()];
      launch.kernels.clear();
      const sync::TaskWiring& wiring = draft_.wiring_of(copy);
      const bool is_silent = std::ranges::all_of(wiring.raises, [&](const sync::PageRaise& raise) {
        return raise.rank == rank && unheard.contains(raise.signal);
      });
      if (!is_silent || !wiring.waits.empty()) continue;
      launch.raises.clear();
      draft_.silence(copy, at);
    }
  }

  Draft& draft_;
  InputCopies copies_;
};

}  // namespace

void read_in_place(Draft& draft) {
  InPlaceReader reader(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    if (draft.steps[at].waits_inside && !draft.steps[at].is_joined) reader.read(at);
  }
}

}  // namespace harpe::launch
