#include "exec/cpu/launch_steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "exec/actions/prepare.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

using launch::Kernel;
using launch::Launch;
using launch::LaunchId;
using launch::LaunchPlan;
using launch::Panel;

bool has_panels(const Kernel& kernel) {
  return !kernel.panels.empty() || !kernel.fused_copies.empty();
}

bool is_by_library(const Launch& launch) {
  return std::ranges::find(launch.kernels, "nccl", &Kernel::name) != launch.kernels.end();
}

std::uint32_t count_chunks(const Plan& plan, const launch::Place& place) {
  std::int64_t bytes = size_in_bytes(plan.allocs[place.alloc.index()].dtype);
  for (const Interval& along : place.span) bytes *= along.size();
  return static_cast<std::uint32_t>((bytes + launch::kCopyChunkBytes - 1) /
                                    launch::kCopyChunkBytes);
}

class StepMaker {
 public:
  StepMaker(const Plan& plan, const LaunchPlan& launches) : plan_(plan), launches_(launches) {
    out_.queues.resize(plan.queues.size());
    out_.ends.resize(plan.tasks.size());
    for (const launch::Signal& signal : launches.signals) {
      out_.signals.push_back({.kind = signal.kind,
                              .index = signal.index,
                              .arrivals = signal.arrivals,
                              .rank = signal.rank,
                              .from = signal.from});
    }
    number_events();
  }

  Checked<LaunchSteps> make() {
    for (std::size_t id = 0; id < launches_.launches.size(); ++id) HP_REQUIRE_OK(add_launch(id));
    return std::move(out_);
  }

 private:
  // Events of launches that others of their rank wait for, and of members of a library's call.
  void number_events() {
    for (const Launch& launch : launches_.launches) {
      for (const LaunchId other : launch.after) number(over_, other);
      for (const LaunchId other : launch.begun) number(begun_, other);
    }
    for (std::size_t i = 0; i < launches_.launches.size(); ++i) {
      const Launch& launch = launches_.launches[i];
      if (!is_by_library(launch)) continue;
      const LaunchId id(static_cast<std::int64_t>(i));
      members_[group_of(launch)].push_back(id);
      number(begun_, id);
      number(done_, id);
    }
  }

  void number(std::map<LaunchId, std::int32_t>& events, LaunchId launch) {
    const Launch& of = launches_.launches[launch.index()];
    const auto next = static_cast<std::int32_t>(out_.signals.size());
    if (!events.try_emplace(launch, next).second) return;
    out_.signals.push_back({.kind = std::nullopt,
                            .index = of.does.front().value,
                            .arrivals = 1,
                            .rank = of.rank,
                            .from = {of.does.front()}});
  }

  [[nodiscard]] std::int32_t group_of(const Launch& launch) const {
    return plan_.tasks[launch.does.front().index()].group;
  }

  Checked<Ok> add_launch(std::size_t number) {
    const Launch& launch = launches_.launches[number];
    const LaunchId id(static_cast<std::int64_t>(number));
    if (launch.lands) {
      return make_diag(DiagCode::V202, {{"what", "launch " + std::to_string(number) +
                                                     ", which lands a put of another host,"}});
    }
    begin(id, launch);
    for (const LaunchId other : launch.after) wait(over_.at(other));
    for (const LaunchId other : launch.begun) wait(begun_.at(other));
    for (const launch::SignalId signal : launch.awaits) wait(signal.value);
    raise_event(begun_, id);
    for (const launch::Raise& raise : launch.ready) this->raise(raise);
    if (launch.all_ready) wait(launch.all_ready->value);
    if (is_by_library(launch)) wait_for_members(begun_, launch);
    if (!launch.is_skipped) HP_REQUIRE_OK(add_kernels(launch));
    for (const launch::Raise& raise : launch.pulled) this->raise(raise);
    if (launch.all_pulled) wait(launch.all_pulled->value);
    if (is_by_library(launch)) {
      raise_event(done_, id);
      wait_for_members(done_, launch);
    }
    for (const launch::Raise& raise : launch.raises) this->raise(raise);
    raise_event(over_, id);
    end(launch);
    return Ok{};
  }

  void begin(LaunchId id, const Launch& launch) {
    queue_ = &out_.queues[launch.queue.index()];
    queue_->push_back({.launch = id, .task = launch.does.front(), .begins = true});
  }

  void end(const Launch& launch) {
    queue_->back().ends = true;
    const auto last = static_cast<std::int32_t>(queue_->size()) - 1;
    for (const TaskId task : launch.does) {
      out_.ends[task.index()] = {.queue = launch.queue.value, .position = last};
    }
  }

  // A step waits, then works, then raises signals.
  void next() {
    const Step& last = queue_->back();
    queue_->push_back({.launch = last.launch, .task = last.task});
  }
  void wait(std::int32_t signal) {
    if (!queue_->back().parts.empty() || !queue_->back().raises.empty()) next();
    queue_->back().waits.push_back(signal);
  }
  void work(const Part& part) {
    if (!queue_->back().raises.empty()) next();
    queue_->back().parts.push_back(part);
  }
  void wait_for_members(const std::map<LaunchId, std::int32_t>& events, const Launch& launch) {
    for (const LaunchId member : members_[group_of(launch)]) wait(events.at(member));
  }
  void raise(const launch::Raise& raise) {
    queue_->back().raises.push_back({.signal = raise.signal.value, .adds = raise.adds});
  }
  void raise_event(const std::map<LaunchId, std::int32_t>& events, LaunchId launch) {
    const auto event = events.find(launch);
    if (event != events.end()) queue_->back().raises.push_back({.signal = event->second});
  }

  Checked<Ok> add_kernels(const Launch& launch) {
    std::vector<TaskId> left = launch.does;
    for (std::size_t i = 0; i < launch.kernels.size(); ++i) {
      if (has_panels(launch.kernels[i])) HP_REQUIRE_OK(add_panels(launch, i, left));
    }
    if (std::ranges::all_of(launch.kernels, has_panels)) return Ok{};
    for (const TaskId task : left) work(task);
    return Ok{};
  }

  Checked<Ok> add_panels(const Launch& launch, std::size_t number, std::vector<TaskId>& left) {
    const Kernel& kernel = launch.kernels[number];
    const std::optional<TaskId> statement = find_statement(plan_, launch, kernel);
    if (!statement) {
      return make_diag(DiagCode::V704, {{"kernel", kernel.name},
                                        {"launch", queue_->back().launch.value},
                                        {"rank", launch.rank.value},
                                        {"problem", "does no statement of the launch's tasks"}});
    }
    const auto at = static_cast<std::int32_t>(number);
    for (std::size_t copy = 0; copy < kernel.fused_copies.size(); ++copy) {
      add_copy(kernel.fused_copies[copy], {.kernel = at, .copy = static_cast<std::int32_t>(copy)});
    }
    for (std::size_t panel = 0; panel < kernel.panels.size(); ++panel) {
      add_panel(kernel, {.kernel = at, .panel = static_cast<std::int32_t>(panel)});
    }
    std::erase_if(left, [&](TaskId id) { return is_done_by(kernel, *statement, id); });
    return Ok{};
  }

  // A kernel's blocks copy beside its panels. Panels may wait for copies of other ranks.
  void add_copy(const launch::FusedCopy& copy, const CopyPart& part) {
    work(part);
    if (copy.raises) raise({.signal = *copy.raises, .adds = count_chunks(plan_, copy.to)});
  }

  void add_panel(const Kernel& kernel, PanelPart part) {
    const auto number = static_cast<std::size_t>(part.panel);
    const Panel& panel = kernel.panels[number];
    if (!queue_->back().parts.empty()) next();
    work(part);
    for (std::size_t i = 0; i < panel.meets.size(); ++i) {
      const auto arrival = static_cast<std::size_t>(panel.meets[i]);
      HP_CHECK(arrival < kernel.arrivals.size(), "a panel meets arrivals of its kernel");
      const auto& when = kernel.arrivals[arrival].when;
      if (when) wait(when->value);
      part.kind = PanelPart::Kind::Meet;
      part.index = static_cast<std::int32_t>(i);
      work(part);
    }
    for (std::size_t i = 0; i < panel.addends.size(); ++i) {
      if (panel.addends[i].when) wait(panel.addends[i].when->value);
      part.kind = PanelPart::Kind::Add;
      part.index = static_cast<std::int32_t>(i);
      work(part);
    }
    for (std::size_t i = 0; i < panel.maps.size(); ++i) {
      part.kind = PanelPart::Kind::Map;
      part.index = static_cast<std::int32_t>(i);
      work(part);
    }
    part.kind = PanelPart::Kind::Store;
    work(part);
    for (std::size_t store = 0; store < kernel.fused_stores.size(); ++store) {
      if (last_panel_of(kernel, store) == number) raise(kernel.fused_stores[store]);
    }
  }

  // The last panel that makes part of a fused store.
  static std::optional<std::size_t> last_panel_of(const Kernel& kernel, std::size_t store) {
    for (std::size_t panel = kernel.panels.size(); panel-- > 0;) {
      if (kernel.panels[panel].fused_store == static_cast<std::int32_t>(store)) return panel;
    }
    return std::nullopt;
  }

  // Whether the kernel does the task with its panels and copies.
  [[nodiscard]] bool is_done_by(const Kernel& kernel, TaskId statement, TaskId id) const {
    const Task& task = plan_.tasks[id.index()];
    const Task& own = plan_.tasks[statement.index()];
    const auto has_maps = [](const Panel& panel) { return !panel.maps.empty(); };
    const auto is_mapped = [&](const Panel& panel) {
      return std::ranges::any_of(panel.maps, [&](const launch::Map& map) {
        return task.nest == map.nest && task.stmt == map.stmt;
      });
    };
    const bool is_own = task.nest == own.nest && task.stmt == own.stmt;
    if (task.kind == TaskKind::Compute) {
      return is_own || std::ranges::any_of(kernel.panels, is_mapped);
    }
    // The operands of maps are not stored.
    if (task.kind == TaskKind::Finalise && is_own && std::ranges::any_of(kernel.panels, has_maps)) {
      return true;
    }
    const auto is_stored = [&](const Ref& ref) {
      const auto stores = [&](const Panel& panel) {
        return std::ranges::count(panel.stores, ref.alloc, &launch::Place::alloc) > 0;
      };
      const auto copies = [&](const launch::FusedCopy& copy) { return copy.to.alloc == ref.alloc; };
      return std::ranges::any_of(kernel.panels, stores) ||
             std::ranges::any_of(kernel.fused_copies, copies);
    };
    return !task.writes.empty() && std::ranges::all_of(task.writes, is_stored);
  }

  const Plan& plan_;
  const LaunchPlan& launches_;
  LaunchSteps out_;
  std::map<LaunchId, std::int32_t> begun_;  // of events, as the next two
  std::map<LaunchId, std::int32_t> over_;
  std::map<LaunchId, std::int32_t> done_;                  // of members: its part was taken
  std::map<std::int32_t, std::vector<LaunchId>> members_;  // of a library's call, by group
  std::vector<Step>* queue_ = nullptr;                     // of the current launch
};

}  // namespace

std::optional<TaskId> find_statement(const Plan& plan, const Launch& launch, const Kernel& kernel) {
  if (kernel.panels.empty() || kernel.arrivals.empty()) return std::nullopt;
  const auto buffer_of = [&](const launch::Place& place) -> const std::string& {
    HP_CHECK(place.alloc.index() < plan.allocs.size(), "a place in an allocation of the plan");
    return plan.allocs[place.alloc.index()].buffer;
  };
  const auto is_among = [&](const std::vector<Access>& accesses) {
    return [&](const launch::Place& place) {
      return std::ranges::count(accesses, buffer_of(place), &Access::buffer) > 0;
    };
  };
  const Panel& panel = kernel.panels.front();
  // Whether the statement makes what the panel stores, or the operand of its first map.
  const auto makes_panel = [&](const Stmt& stmt) {
    if (panel.maps.empty()) return std::ranges::all_of(panel.stores, is_among(stmt.targets));
    const launch::Map& map = panel.maps.front();
    const std::vector<Access>& mapped = actions::statement_of(plan, map.nest, map.stmt).operands;
    return std::ranges::all_of(stmt.targets, [&](const Access& target) {
      return std::ranges::count(mapped, target.buffer, &Access::buffer) > 0;
    });
  };
  for (const TaskId id : launch.does) {
    const Task& task = plan.tasks[id.index()];
    if (task.kind != TaskKind::Compute) continue;
    const Stmt& stmt = actions::statement_of(plan, task);
    if (makes_panel(stmt) &&
        std::ranges::all_of(kernel.arrivals.front().reads, is_among(stmt.operands))) {
      return id;
    }
  }
  return std::nullopt;
}

Checked<LaunchSteps> make_steps(const Plan& plan, const LaunchPlan& launches) {
  return StepMaker(plan, launches).make();
}

}  // namespace harpe::cpu
