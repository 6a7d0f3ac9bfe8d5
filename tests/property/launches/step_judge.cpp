#include "tests/property/launches/step_judge.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "verify/cuts.h"
#include "verify/panel_model.h"
#include "verify/signals_in_data.h"
#include "verify/steps.h"

namespace harpe::test {
namespace {

using verifier::Model;
using verifier::StepKind;
using verifier::Steps;

// The identity of a step in any launch: its kind; its task or the first task of its launch; kernel;
// panel or copy; place within that; and whether it belongs to the next execution.
using Work = std::tuple<StepKind, std::int32_t, std::int32_t, std::int32_t, std::int32_t, bool>;

class Closure {
 public:
  Closure(const Plan& plan, const launch::LaunchPlan& launches) : launches_(launches) {
    auto coarse = Model::make(plan.program, plan.mesh, plan.form);
    const verifier::AxisCuts cuts = verifier::find_cuts(plan, launches, *coarse);
    auto model = Model::make(plan.program, plan.mesh, plan.form, cuts);
    const Plan fine = verifier::cut_plan(plan, *coarse, *model);
    auto steps = verifier::make_steps(fine, launches, {fine, *model});
    is_valid_ = steps.ok();
    if (!is_valid_) return;
    steps_ = std::move(steps).value();
    steps_.plan = verifier::drop_signals_in_data(steps_);
    add_edges();
    close();
  }

  // For conflicting works: 1 if the first comes first, -1 if the second does, 0 if neither.
  [[nodiscard]] std::map<std::pair<Work, Work>, int> conflicts() const {
    std::map<std::pair<Work, Work>, int> found;
    const std::size_t count = steps_.plan.tasks.size();
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = a + 1; b < count; ++b) {
        if (!conflict(a, b)) continue;
        const int order = before_[b][a] ? 1 : before_[a][b] ? -1 : 0;
        const Work first = work_of(a);
        const Work second = work_of(b);
        if (first < second) {
          found[{first, second}] = order;
        } else {
          found[{second, first}] = -order;
        }
      }
    }
    return found;
  }
  [[nodiscard]] bool is_valid() const { return is_valid_; }

  // True if every step that touches a rank's homes comes behind its entry and before its exit.
  [[nodiscard]] bool respects_spans() const {
    for (std::size_t a = 0; a < steps_.scope.tasks; ++a) {
      if (!is_boundary(a)) continue;
      const bool enters = task(a).kind == TaskKind::Entry;
      for (std::size_t b = 0; b < steps_.scope.tasks; ++b) {
        if (is_boundary(b) || !touches_rank(b, rank_of(a))) continue;
        if (!(enters ? before_[b][a] : before_[a][b])) return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] const Task& task(std::size_t step) const {
    return steps_.plan.tasks[step % steps_.scope.tasks];
  }
  [[nodiscard]] RankId rank_of(std::size_t step) const {
    return steps_.plan.queues[task(step).queue.index()].rank;
  }

  [[nodiscard]] Work work_of(std::size_t step) const {
    const std::size_t own = step % steps_.scope.tasks;
    const verifier::StepOrigin& origin = steps_.origins[own];
    const TaskId first = launches_.launches[origin.launch.index()].does.front();
    std::int32_t at = 0;
    while (is_of_part(own - static_cast<std::size_t>(at) - 1, origin)) ++at;
    return {origin.kind,
            origin.kind == StepKind::Task ? origin.task.value : first.value,
            origin.kernel,
            origin.part,
            at,
            step >= steps_.scope.tasks};
  }

  // `step` may wrap around when it is one before the first; then the answer is false.
  [[nodiscard]] bool is_of_part(std::size_t step, const verifier::StepOrigin& of) const {
    if (of.kind == StepKind::Task || step >= steps_.scope.tasks) return false;
    const verifier::StepOrigin& origin = steps_.origins[step];
    return origin.launch == of.launch && origin.kernel == of.kernel && origin.part == of.part;
  }

  void add_edges() {
    const std::size_t tasks = steps_.plan.tasks.size();
    after_.resize(tasks + steps_.plan.barriers.size());
    std::vector<std::int64_t> last(steps_.plan.queues.size(), -1);
    for (std::size_t step = 0; step < tasks; ++step) {
      std::int64_t& before = last[task(step).queue.index()];
      if (before >= 0) after_[static_cast<std::size_t>(before)].push_back(step);
      before = static_cast<std::int64_t>(step);
    }
    for (const Sync& sync : steps_.plan.syncs) after_[sync.from.index()].push_back(sync.to.index());
    for (std::size_t i = 0; i < steps_.plan.barriers.size(); ++i) {
      const Barrier& barrier = steps_.plan.barriers[i];
      for (const TaskId from : barrier.from) after_[from.index()].push_back(tasks + i);
      for (const TaskId to : barrier.to) after_[tasks + i].push_back(to.index());
    }
  }

  // Fills before_: before_[b][a] is true if a comes before b.
  void close() {
    const std::size_t nodes = after_.size();
    before_.assign(nodes, std::vector<bool>(nodes, false));
    for (std::size_t from = 0; from < nodes; ++from) {
      std::vector<std::size_t> found = {from};
      for (std::size_t next = 0; next < found.size(); ++next) {
        for (const std::size_t to : after_[found[next]]) {
          if (before_[to][from]) continue;
          before_[to][from] = true;
          found.push_back(to);
        }
      }
    }
  }

  [[nodiscard]] bool is_boundary(std::size_t step) const {
    return task(step).kind == TaskKind::Entry || task(step).kind == TaskKind::Exit;
  }

  [[nodiscard]] bool conflict(std::size_t a, std::size_t b) const {
    if (is_boundary(a) || is_boundary(b)) {
      return is_boundary(a) ? touches_rank(b, rank_of(a)) : touches_rank(a, rank_of(b));
    }
    const Task& first = task(a);
    const Task& second = task(b);
    return overlap(first.writes, second.writes) || overlap(first.writes, second.reads) ||
           overlap(first.reads, second.writes);
  }

  [[nodiscard]] bool touches_rank(std::size_t step, RankId rank) const {
    const auto is_home = [&](const Ref& ref) {
      const Alloc& alloc = steps_.plan.allocs[ref.alloc.index()];
      return alloc.rank == rank && alloc.level == Level::Home;
    };
    const bool works = !task(step).reads.empty() || !task(step).writes.empty();
    return (is_boundary(step) || works) &&
           (rank_of(step) == rank || std::ranges::any_of(task(step).reads, is_home) ||
            std::ranges::any_of(task(step).writes, is_home));
  }

  // True for equal blocks, and for different blocks that occupy the same memory of a slot in turn.
  [[nodiscard]] bool overlap(const std::vector<Ref>& first, const std::vector<Ref>& second) const {
    for (const Ref& a : first) {
      for (const Ref& b : second) {
        if (a.alloc != b.alloc) continue;
        const std::vector<bool>& holds = steps_.plan.allocs[a.alloc.index()].holds;
        for (const Box& x : a.boxes) {
          for (const Box& y : b.boxes) {
            bool is_apart = false;
            bool is_other = false;
            for (std::size_t i = 0; i < x.size(); ++i) {
              const bool apart = x[i].lo >= y[i].hi || y[i].lo >= x[i].hi;
              (holds[i] ? is_apart : is_other) |= apart;
            }
            if (is_other || !is_apart) return true;
          }
        }
      }
    }
    return false;
  }

  const launch::LaunchPlan& launches_;
  bool is_valid_ = false;
  Steps steps_;
  std::vector<std::vector<std::size_t>> after_;
  std::vector<std::vector<bool>> before_;
};

// Redirects every read of an input to the first home of its buffer.
launch::LaunchPlan read_first_homes(const Plan& plan, launch::LaunchPlan launches) {
  const auto is_home = [&](const Alloc& alloc, const std::string& buffer) {
    return alloc.level == Level::Home && alloc.buffer == buffer;
  };
  const auto move = [&](launch::Place& place) {
    if (place.alloc.index() >= plan.allocs.size()) return;
    const Alloc& own = plan.allocs[place.alloc.index()];
    const Buffer* const buffer = find_buffer(plan.program, own.buffer);
    if (own.level != Level::Home || buffer->role != Role::In) return;
    const auto found = std::ranges::find_if(
        plan.allocs, [&](const Alloc& alloc) { return is_home(alloc, own.buffer); });
    place.alloc = AllocId(found - plan.allocs.begin());
  };
  for (launch::Launch& each : launches.launches) {
    for (launch::Kernel& kernel : each.kernels) {
      for (launch::Arrival& arrival : kernel.arrivals) std::ranges::for_each(arrival.reads, move);
      for (launch::Panel& panel : kernel.panels) {
        std::ranges::for_each(panel.reads, move);
        for (launch::Map& map : panel.maps) std::ranges::for_each(map.reads, move);
      }
    }
  }
  return launches;
}

}  // namespace

bool orders_alike(const Plan& plan, const launch::LaunchPlan& first,
                  const launch::LaunchPlan& second) {
  const Closure a(plan, first);
  const Closure b(plan, second);
  return a.is_valid() && b.is_valid() && a.conflicts() == b.conflicts();
}

bool reads_replicas(const Plan& plan, const launch::LaunchPlan& first,
                    const launch::LaunchPlan& second) {
  if (read_first_homes(plan, first) != read_first_homes(plan, second)) return false;
  const Closure closure(plan, second);
  return closure.is_valid() && closure.respects_spans();
}

}  // namespace harpe::test
