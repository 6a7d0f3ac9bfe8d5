#include "exec/cuda/executor/units.h"

#include <algorithm>
#include <map>
#include <set>

#include "exec/cuda/actions/batch.h"
#include "exec/cuda/actions/merge.h"
#include "exec/cuda/actions/read_in_place.h"
#include "exec/cuda/actions/relocate.h"
#include "exec/cuda/executor/fused_copies.h"
#include "exec/cuda/executor/fused_stores.h"
#include "exec/cuda/executor/reserved_sms.h"
#include "exec/describe.h"

namespace harpe::cuda {
namespace {

class UnitMaker {
 public:
  UnitMaker(const Plan& plan, const Wiring& wiring, const Groups& groups, RankId rank,
            const std::vector<TaskSpecs>& specs, const SignalSource& signals)
      : plan_(plan),
        wiring_(wiring),
        groups_(groups),
        specs_(specs),
        signals_(signals),
        rank_(rank),
        reserved_(plan, wiring, groups, specs, rank, signals.is_alone) {}

  std::vector<UnitSpec> make() {
    const std::vector<TaskId>& sequence = wiring_.sequence[rank_.index()];
    const FusedStores fused_stores(plan_, wiring_, specs_, signals_);
    find_neighbours(sequence);
    for (const TaskId task : sequence) find_moves(task);
    for (const TaskId task : sequence) {
      if (done_.contains(task)) continue;
      UnitSpec unit = begin(task);
      fused_stores.fuse(unit, next_);
      finish_at_home(unit);
      done_.insert(unit.tasks.begin(), unit.tasks.end());
      units_.push_back(std::move(unit));
    }
    for (UnitSpec& unit : units_) {
      const TaskId first = unit.tasks.front();
      if (idle_.contains(first)) unit.launches.clear();
      if (silent_.contains(first)) unit.silent = unit.tasks;
      if (!idle_.contains(first) && reserved_.is_raised_by_engine(first)) {
        unit.raised_by = RaisedBy::Engine;
      }
    }
    return std::move(units_);
  }

 private:
  [[nodiscard]] const TaskWiring& wiring_of(TaskId task) const {
    return wiring_.tasks[task.index()];
  }

  void find_neighbours(const std::vector<TaskId>& sequence) {
    std::map<QueueId, TaskId> last;
    for (const TaskId task : sequence) {
      const QueueId queue = plan_.tasks[task.index()].queue;
      if (const auto before = last.find(queue); before != last.end()) next_[before->second] = task;
      last[queue] = task;
      followed_.insert(wiring_of(task).after.begin(), wiring_of(task).after.end());
    }
  }

  // Copies of this rank's own inputs, which lie as still as the copies do.
  void find_moves(TaskId id) {
    const Task& task = plan_.tasks[id.index()];
    if (task.kind != TaskKind::Copy || !is_local(id)) return;
    for (const Ref& ref : task.reads) {
      const Alloc& from = plan_.allocs[ref.alloc.index()];
      if (from.level != Level::Home || find_buffer(plan_.program, from.buffer)->role != Role::In) {
        return;
      }
    }
    for (const actions::Action& action : specs_[id.index()].actions) {
      const auto* const move = std::get_if<actions::Assign>(&action);
      if (move == nullptr || move->to.dtype != move->from.dtype || move->slots.used.rows) return;
      moves_.emplace_back(*move, PlaceMap::Way::Against);
    }
    movers_.push_back(id);
  }

  [[nodiscard]] bool is_local(TaskId id) const {
    const Task& task = plan_.tasks[id.index()];
    const RankId rank = rank_of(plan_, id);
    const auto own = [&](const Ref& ref) { return plan_.allocs[ref.alloc.index()].rank == rank; };
    return std::ranges::all_of(task.reads, own) && std::ranges::all_of(task.writes, own);
  }

  [[nodiscard]] UnitSpec begin(TaskId task) {
    if (const int group = groups_.of(task); group >= 0) {
      std::optional<UnitSpec> merged =
          merge_group(groups_.members[static_cast<std::size_t>(group)]);
      if (merged) return *std::move(merged);
    }
    UnitSpec unit{.tasks = run_from(task), .launches = {}};
    std::vector<LaunchSpec> launches;
    for (const TaskId member : unit.tasks) {
      const std::vector<LaunchSpec>& own = specs_[member.index()].launches;
      launches.insert(launches.end(), own.begin(), own.end());
    }
    unit.launches = joined(std::move(launches));
    return unit;
  }

  // The task, and those behind it that do the same to further ragged rows and stand in nobody's
  // way: nothing is waited for or raised in between.
  [[nodiscard]] std::vector<TaskId> run_from(TaskId first) const {
    std::vector<TaskId> run = {first};
    const Task& task = plan_.tasks[first.index()];
    if (task.kind != TaskKind::Compute || !is_ragged(first)) return run;
    for (auto next = next_.find(first); next != next_.end(); next = next_.find(run.back())) {
      const Task& other = plan_.tasks[next->second.index()];
      const TaskWiring& wiring = wiring_of(next->second);
      const bool continues = other.kind == task.kind && other.nest == task.nest &&
                             other.stmt == task.stmt && is_ragged(next->second) &&
                             wiring.waits.empty() && wiring.after.empty();
      if (!continues || !wiring_of(run.back()).raises.empty() || followed_.contains(run.back())) {
        break;
      }
      run.push_back(next->second);
    }
    return run;
  }

  [[nodiscard]] bool is_ragged(TaskId task) const {
    return std::ranges::all_of(specs_[task.index()].launches, cuda::is_ragged);
  }

  // Launches as one, where they can be, else as few.
  [[nodiscard]] std::vector<LaunchSpec> joined(std::vector<LaunchSpec> launches) const {
    if (launches.size() < 2) return launches;
    std::vector<ArrivingLaunch> all;
    for (const LaunchSpec& launch : launches) all.push_back({.spec = launch});
    const std::optional<LaunchSpec> one = merge(all, {});
    return one && can_run(*one) ? std::vector<LaunchSpec>{*one}
                                : batched(std::move(launches), signals_.multiprocessors);
  }

  // Several as one may be cut where no kernel cuts them.
  [[nodiscard]] bool can_run(const LaunchSpec& launch) const {
    return check(launch, signals_.multiprocessors).ok();
  }

  [[nodiscard]] std::optional<UnitSpec> merge_group(const std::vector<TaskId>& members) {
    std::vector<ArrivingLaunch> launches;
    for (const TaskId task : members) {
      const std::vector<LaunchSpec>& own = specs_[task.index()].launches;
      const bool first = task == members.front();
      const std::vector<std::int32_t>& signals = wiring_of(task).waits;
      const bool is_simple = signals.size() <= 1 && (first || wiring_of(task).after.empty());
      if (own.empty() || !is_simple) return std::nullopt;
      for (const LaunchSpec& spec : own) {
        ArrivingLaunch launch{.spec = spec};
        if (!signals.empty())
          launch.ready = signals_.waits[static_cast<std::size_t>(signals.front())];
        launches.push_back(std::move(launch));
      }
    }
    device::WaitContext context = signals_.context;
    context.task = static_cast<std::uint32_t>(members.front().value);
    std::optional<LaunchSpec> merged = merge(launches, context);
    if (!merged || !can_run(*merged)) return std::nullopt;
    std::vector<TaskId> waiting;
    std::set<std::int32_t> unheard;  // signals
    const std::vector<bool> in_place = read_in_place(*merged, moves_);
    if (in_place.size() != members.size()) return std::nullopt;  // one operand of each is awaited
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::vector<std::int32_t>& signals = wiring_of(members[i]).waits;
      if (in_place[i]) {
        unheard.insert(signals.begin(), signals.end());
      } else {
        waiting.push_back(members[i]);
      }
    }
    if (waiting.size() < members.size()) note_idle(members, unheard);
    UnitSpec unit{.tasks = members, .launches = {*std::move(merged)}, .waits_inside = true};
    send_inside(unit);
    ReservedSms::Need need = reserved_.beside(members, waiting, silent_);
    unit.spared = need.multiprocessors;
    unit.behind = std::move(need.behind);
    return unit;
  }

  // What the rank sends by blocks of a kernel becomes the first waiting kernel's work, where that
  // begins with the execution: others may need it for what the kernel would else stand behind.
  void send_inside(UnitSpec& unit) {
    if (!begins_at_once(unit.tasks.front())) return;
    const std::optional<FusedCopies> copies =
        find_fused_copies(plan_, wiring_, specs_, rank_, signals_);
    const bool is_begun = copies && std::ranges::any_of(copies->tasks, [&](TaskId task) {
                            return done_.contains(task);
                          });
    if (!copies || is_begun ||
        !fuse_copies(*copies, unit.launches.front(),
                     signals_.multiprocessors - ReservedSms::kForKernels)) {
      return;
    }
    // Behind the first, whose stream it is, and before the last, which others follow.
    unit.tasks.insert(unit.tasks.begin() + 1, copies->tasks.begin(), copies->tasks.end());
    unit.silent.insert(unit.silent.end(), copies->tasks.begin(), copies->tasks.end());
    silent_.insert(copies->tasks.begin(), copies->tasks.end());
  }

  // Nothing but the Entry comes before it, in its queue or by an event.
  [[nodiscard]] bool begins_at_once(TaskId task) const {
    const auto is_entry = [&](TaskId from) {
      return plan_.tasks[from.index()].kind == TaskKind::Entry;
    };
    return std::ranges::none_of(next_, [&](const auto& pair) { return pair.second == task; }) &&
           std::ranges::all_of(wiring_of(task).after, is_entry);
  }

  // Copies that only these tasks would have read are not made, and are silent where all that they
  // raise is unheard.
  void note_idle(const std::vector<TaskId>& members, const std::set<std::int32_t>& unheard) {
    for (const TaskId mover : movers_) {
      const bool unread =
          std::ranges::all_of(plan_.tasks[mover.index()].writes,
                              [&](const Ref& ref) { return is_read_by(ref.alloc, members); });
      if (!unread) continue;
      idle_.insert(mover);
      const bool is_silent = std::ranges::all_of(wiring_of(mover).raises, [&](const Raise& raise) {
        return raise.rank == rank_ && unheard.contains(raise.signal);
      });
      if (is_silent && wiring_of(mover).waits.empty()) silent_.insert(mover);
    }
  }

  [[nodiscard]] bool is_read_by(AllocId alloc, const std::vector<TaskId>& members) const {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (std::ranges::find(members, task) != members.end()) continue;
      if (std::ranges::any_of(plan_.tasks[i].reads,
                              [&](const Ref& ref) { return ref.alloc == alloc; })) {
        return false;
      }
    }
    return true;
  }

  // A Finalise right behind, of nothing but what the unit has made.
  void finish_at_home(UnitSpec& unit) const {
    const Task& last = plan_.tasks[unit.tasks.back().index()];
    const auto next = next_.find(unit.tasks.back());
    if (last.kind != TaskKind::Compute || next == next_.end()) return;
    const TaskId finalise = next->second;
    const Task& task = plan_.tasks[finalise.index()];
    const TaskWiring& wiring = wiring_of(finalise);
    const bool fits = task.kind == TaskKind::Finalise && task.reads.size() == task.writes.size() &&
                      wiring.waits.empty() && wiring.after.empty() &&
                      std::ranges::all_of(task.reads, [&](const Ref& ref) {
                        return is_only(ref.alloc, unit, finalise);
                      });
    if (!fits || !relocate(unit.launches, specs_[finalise.index()].actions)) return;
    unit.tasks.push_back(finalise);
    unit.joined.push_back(finalise);
  }

  // True if only the unit, tasks before it in its queue and the task behind it read or write the
  // allocation.
  [[nodiscard]] bool is_only(AllocId alloc, const UnitSpec& unit, TaskId finalise) const {
    const QueueId queue = plan_.tasks[finalise.index()].queue;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (task == finalise || std::ranges::find(unit.tasks, task) != unit.tasks.end()) continue;
      if (plan_.tasks[i].queue == queue && task < unit.tasks.front()) continue;
      const auto names = [&](const Ref& ref) { return ref.alloc == alloc; };
      if (std::ranges::any_of(plan_.tasks[i].reads, names) ||
          std::ranges::any_of(plan_.tasks[i].writes, names)) {
        return false;
      }
    }
    return true;
  }

  const Plan& plan_;
  const Wiring& wiring_;
  const Groups& groups_;
  const std::vector<TaskSpecs>& specs_;
  const SignalSource& signals_;
  RankId rank_;
  ReservedSms reserved_;
  std::map<TaskId, TaskId> next_;  // of the same queue
  std::set<TaskId> followed_;      // by tasks of other queues
  std::vector<TaskId> movers_;     // copies of the rank's own inputs
  std::vector<PlaceMap> moves_;    // theirs
  std::set<TaskId> idle_;          // of these, copies that nobody reads
  std::set<TaskId> silent_;        // of those, the ones that nobody waits for either
  std::set<TaskId> done_;
  std::vector<UnitSpec> units_;
};

}  // namespace

device::WaitContext* inner_wait(UnitSpec& unit) {
  const auto is_awaited = [](const auto& operand) { return operand.ready.flag != nullptr; };
  if (unit.launches.size() != 1) return nullptr;
  if (auto* const gemm = std::get_if<GemmSpec>(&unit.launches.front())) {
    const bool waits = std::ranges::any_of(gemm->panels, [&](const GemmPanelSpec& panel) {
      return std::ranges::any_of(panel.pieces, is_awaited) ||
             std::ranges::any_of(panel.addends, is_awaited);
    });
    return waits ? &gemm->wait : nullptr;
  }
  if (auto* const attention = std::get_if<AttentionSpec>(&unit.launches.front())) {
    const bool waits = std::ranges::any_of(attention->panels, is_awaited) ||
                       std::ranges::any_of(attention->chunks, is_awaited);
    return waits ? &attention->wait : nullptr;
  }
  return nullptr;
}

std::vector<UnitSpec> make_units(const Plan& plan, const Wiring& wiring, const Groups& groups,
                                 RankId rank, const std::vector<TaskSpecs>& specs,
                                 const SignalSource& signals) {
  return UnitMaker(plan, wiring, groups, rank, specs, signals).make();
}

}  // namespace harpe::cuda
