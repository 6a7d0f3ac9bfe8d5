#include <algorithm>
#include <map>
#include <utility>

#include "launch/passes.h"
#include "leaves/leaf.h"

namespace harpe::launch {
namespace {

using StatementKey = std::pair<std::string, int>;  // nest, and index in it

const Stmt& statement_of(const Plan& plan, const Task& task) {
  return find_nest(plan.program, task.nest)->stmts[static_cast<std::size_t>(task.stmt)];
}

bool is_pointwise(const Stmt& stmt) {
  const LeafContract* const leaf = find_leaf_contract(stmt.leaf);
  return leaf != nullptr && leaf->pointwise;
}

// A pointwise task, and where it reads and writes.
struct MapTask {
  TaskId id;
  const Task& task;
  const Stmt& stmt;
  AllocId made;  // the allocation that the kernels before it store
  std::vector<LaidRef> reads;
  std::vector<LaidRef> writes;
};

// Kernels of a launch that also do a pointwise task.
struct Proposal {
  std::size_t at = 0;
  TaskId task;
  std::vector<Kernel> kernels;
};

class MapFuser {
 public:
  explicit MapFuser(Draft& draft) : draft_(draft) {
    for (const Nest& nest : draft.plan.program.nests) {
      for (std::size_t i = 0; i < nest.stmts.size(); ++i) {
        if (is_pointwise(nest.stmts[i])) tasks_[{nest.name, static_cast<int>(i)}] = 0;
      }
    }
    if (tasks_.empty()) return;
    for (const Task& task : draft.plan.tasks) {
      const auto found = tasks_.find({task.nest, task.stmt});
      if (task.kind == TaskKind::Compute && found != tasks_.end()) ++found->second;
    }
  }

  // Runs rounds until no launch has a map behind it.
  void fuse_all() {
    while (!tasks_.empty() && fuse_round()) {
    }
    for (const auto& [task, decision] : refused_) draft_.decisions.push_back(decision);
  }

 private:
  // True if a launch took in a map. Fusing removes a rounding, so either all tasks of a statement
  // are fused or none: replicas of a result then have equal bits.
  bool fuse_round() {
    std::map<StatementKey, std::vector<Proposal>> proposals;
    for (std::size_t at = 0; at < draft_.steps.size(); ++at) {
      if (draft_.steps[at].is_joined || draft_.steps[at].launch.lands) continue;
      std::optional<Proposal> found = propose(at);
      if (!found) continue;
      const Task& task = draft_.task(found->task);
      proposals[{task.nest, task.stmt}].push_back(*std::move(found));
    }
    bool is_any = false;
    for (auto& [statement, found] : proposals) {
      const std::int64_t others = tasks_.at(statement) - static_cast<std::int64_t>(found.size());
      for (Proposal& each : found) {
        if (others > 0) {
          refuse(each.task, Reason::NotEverywhere, each.task.value, others);
          continue;
        }
        apply(std::move(each));
        is_any = true;
      }
    }
    return is_any;
  }

  void apply(Proposal proposal) {
    draft_.steps[proposal.at].launch.kernels = std::move(proposal.kernels);
    draft_.join(proposal.at, draft_.step_at[proposal.task.index()]);
    draft_.applied(proposal.task);
    refused_.erase(proposal.task);
  }

  [[nodiscard]] std::optional<Proposal> propose(std::size_t at) {
    const Launch& launch = draft_.steps[at].launch;
    const std::optional<TaskId> next = draft_.next(launch.does.back());
    if (!next || !is_alone(*next)) return std::nullopt;
    const Task& task = draft_.task(*next);
    if (task.kind != TaskKind::Compute || !tasks_.contains({task.nest, task.stmt})) {
      return std::nullopt;
    }
    const sync::TaskWiring& wiring = draft_.wiring_of(*next);
    if (!wiring.waits.empty() || !wiring.after.empty()) {
      refuse(*next, Reason::SignalBetween, launch.does.back().value, next->value);
      return std::nullopt;
    }
    const std::optional<AllocId> made = find_made(launch, *next);
    if (!made || !is_sole_reader(at, *next, *made)) return std::nullopt;
    MapTask map{.id = *next,
                .task = task,
                .stmt = statement_of(draft_.plan, task),
                .made = *made,
                .reads = {},
                .writes = {}};
    for (const Ref& ref : task.reads) map.reads.push_back(draft_.layouts.of(ref));
    for (const Ref& ref : task.writes) map.writes.push_back(draft_.layouts.of(ref));
    if (!keeps_places(map)) return std::nullopt;
    Proposal proposal{.at = at, .task = *next, .kernels = launch.kernels};
    if (!add_map(map, proposal.kernels) || !can_run(launch, proposal)) return std::nullopt;
    return proposal;
  }

  [[nodiscard]] bool is_alone(TaskId task) const {
    const Step& step = draft_.steps[draft_.step_at[task.index()]];
    return !step.is_joined && step.launch.does.size() == 1;
  }

  // The one allocation that all panels are stored in.
  [[nodiscard]] std::optional<AllocId> find_made(const Launch& launch, TaskId map) {
    std::optional<AllocId> made;
    for (const Kernel& kernel : launch.kernels) {
      for (const Panel& panel : kernel.panels) {
        const bool is_other = made && panel.stores.front().alloc != *made;
        if (panel.stores.size() != 1 || is_other) {
          refuse(map, Reason::NotWhole, map.value);
          return std::nullopt;
        }
        if (panel.adds) {
          refuse(map, Reason::AddsUp, launch.does.front().value);
          return std::nullopt;
        }
        made = panel.stores.front().alloc;
      }
    }
    const bool all_have =
        std::ranges::none_of(launch.kernels, &std::vector<Panel>::empty, &Kernel::panels);
    if (made && all_have) return made;
    refuse(map, Reason::NoPanels, launch.does.front().value);
    return std::nullopt;
  }

  // True if only the launch and the map use what is stored, and it is not a result of the caller's.
  [[nodiscard]] bool is_sole_reader(std::size_t at, TaskId map, AllocId made) {
    const Buffer& buffer =
        *find_buffer(draft_.plan.program, draft_.plan.allocs[made.index()].buffer);
    if (buffer.role != Role::Temp) {
      refuse(map, Reason::CallersResult, map.value);
      return false;
    }
    const TaskId first = draft_.steps[at].launch.does.front();
    const QueueId queue = draft_.task(map).queue;
    for (const auto* const users : {&draft_.readers, &draft_.writers}) {
      for (const TaskId user : (*users)[made.index()]) {
        const bool is_before = draft_.task(user).queue == queue && user < first;
        if (user == map || is_before || draft_.step_at[user.index()] == at) continue;
        refuse(map, Reason::StateShared, map.value, user.value);
        return false;
      }
    }
    return true;
  }

  // True if each element of the result depends on the panel's element at the same place.
  [[nodiscard]] bool keeps_places(const MapTask& map) {
    const auto buffer_of = [&](const Access& access) -> const Buffer& {
      return *find_buffer(draft_.plan.program, access.buffer);
    };
    const auto is_plain = [&](const Access& access) {
      return access.renames.empty() &&
             std::ranges::none_of(buffer_of(access).dims, [](const Dim& dim) {
               return std::holds_alternative<std::int64_t>(dim);
             });
    };
    const Access& target = map.stmt.targets.front();
    const std::string& made = draft_.plan.allocs[map.made.index()].buffer;
    const auto of_made = [&](const Access& access) { return access.buffer == made; };
    const auto is_cut = [](const Ref& ref) { return ref.when.has_value(); };
    const bool fits = is_plain(target) && std::ranges::all_of(map.stmt.operands, is_plain) &&
                      std::ranges::any_of(map.stmt.operands, of_made) &&
                      buffer_of(target).dims == find_buffer(draft_.plan.program, made)->dims &&
                      std::ranges::none_of(map.task.reads, is_cut);
    if (!fits) refuse(map.id, Reason::OtherAxes, map.id.value);
    return fits;
  }

  // True if the kernels make all of the task's result, and store nothing that the task does not
  // read.
  [[nodiscard]] bool add_map(const MapTask& map, std::vector<Kernel>& kernels) {
    std::int64_t left = 0;  // elements of the result that no panel makes yet
    for (const LaidRef& ref : map.writes) left += ref.elements();
    for (Kernel& kernel : kernels) {
      for (Panel& panel : kernel.panels) {
        left -= count_elements(panel.stores.front().span);
        if (!add_to(map, panel)) return refused_whole(map.id);
      }
    }
    return left == 0 || refused_whole(map.id);
  }

  [[nodiscard]] bool add_to(const MapTask& map, Panel& panel) const {
    Place& stored = panel.stores.front();
    if (!find_place(map.reads, stored.alloc, stored.span)) return false;
    Map added{.nest = map.task.nest, .stmt = map.task.stmt, .reads = {}};
    const BufferTable& made = table_of(map.made);
    for (const Access& access : map.stmt.operands) {
      if (access.buffer == made.name) continue;
      const int buffer = draft_.blocks.find_buffer(access.buffer);
      Span span;
      for (const int axis : draft_.blocks.buffers()[static_cast<std::size_t>(buffer)].axes) {
        const auto along = std::ranges::find(made.axes, axis) - made.axes.begin();
        span.push_back(stored.span[static_cast<std::size_t>(along)]);
      }
      const auto from = find_in_buffer(map.reads, access.buffer, span);
      if (!from) return false;
      added.reads.push_back({.alloc = *from, .span = std::move(span)});
    }
    const std::string& target = map.stmt.targets.front().buffer;
    const auto to = find_in_buffer(map.writes, target, stored.span);
    if (!to) return false;
    stored.alloc = *to;
    panel.dtype = draft_.dtype_of(*to);
    panel.maps.push_back(std::move(added));
    return true;
  }

  [[nodiscard]] const BufferTable& table_of(AllocId alloc) const {
    const int buffer = draft_.layouts.buffer_of(alloc);
    return draft_.blocks.buffers()[static_cast<std::size_t>(buffer)];
  }

  [[nodiscard]] static bool find_place(const std::vector<LaidRef>& refs, AllocId alloc,
                                       const Span& span) {
    return std::ranges::any_of(
        refs, [&](const LaidRef& ref) { return ref.alloc == alloc && ref.find(span) != nullptr; });
  }

  [[nodiscard]] std::optional<AllocId> find_in_buffer(const std::vector<LaidRef>& refs,
                                                      const std::string& buffer,
                                                      const Span& span) const {
    const auto found = std::ranges::find_if(refs, [&](const LaidRef& ref) {
      return draft_.plan.allocs[ref.alloc.index()].buffer == buffer && ref.find(span) != nullptr;
    });
    if (found == refs.end()) return std::nullopt;
    return found->alloc;
  }

  [[nodiscard]] bool can_run(const Launch& launch, const Proposal& proposal) {
    Launch proposed = launch::proposal(launch);
    proposed.does.push_back(proposal.task);
    for (const Kernel& kernel : proposal.kernels) {
      if (draft_.offers.choose(proposed, kernel)) continue;
      refuse(proposal.task, Reason::NoKernel, static_cast<std::int64_t>(kernel.panels.size()),
             static_cast<std::int64_t>(kernel.arrivals.size()));
      return false;
    }
    return true;
  }

  // A task that one round refuses may be behind another launch in the next round.
  void refuse(TaskId task, Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
    refused_.insert_or_assign(
        task, Decision{.pass = draft_.pass, .task = task, .refused = reason, .a = a, .b = b});
  }
  bool refused_whole(TaskId task) {
    refuse(task, Reason::NotWhole, task.value);
    return false;
  }

  Draft& draft_;
  std::map<StatementKey, std::int64_t> tasks_;  // number of compute tasks of each pointwise
                                                // statement
  std::map<TaskId, Decision> refused_;
};

}  // namespace

void fuse_maps(Draft& draft) { MapFuser(draft).fuse_all(); }

}  // namespace harpe::launch
