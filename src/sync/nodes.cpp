#include "sync/nodes.h"

#include <algorithm>
#include <optional>

#include "plan/refs.h"

namespace harpe::sync {
namespace {

// A rank of another node whose memory the task accesses.
std::optional<RankId> far_rank(const Plan& plan, const Nodes& nodes, TaskId task) {
  const RankId own = rank_of(plan, task);
  const Task& one = plan.tasks[task.index()];
  for (const std::vector<Ref>* refs : {&one.reads, &one.writes}) {
    for (const Ref& ref : *refs) {
      const RankId other = plan.allocs[ref.alloc.index()].rank;
      if (!nodes.are_together(own, other)) return other;
    }
  }
  return std::nullopt;
}

Checked<Ok> check_barriers(const Plan& plan) {
  for (std::size_t i = 0; i < plan.barriers.size(); ++i) {
    const Barrier& barrier = plan.barriers[i];
    const auto put =
        std::ranges::find_if(barrier.from, [&](TaskId from) { return goes_out(plan, from); });
    const auto early = std::ranges::find_if(
        barrier.to, [&](TaskId to) { return plan.tasks[to.index()].kind != TaskKind::Exit; });
    if (put == barrier.from.end() || early == barrier.to.end()) continue;
    return make_diag(DiagCode::G091, {{"barrier", i}, {"put", put->value}, {"task", early->value}});
  }
  return Ok{};
}

}  // namespace

Nodes::Nodes(const Plan& plan) : have_network_(!puts_of(plan).empty()) {
  for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    of_rank_.push_back(coordinates_of(plan.mesh, RankId(rank)).front());
  }
}

bool goes_out(const Plan& plan, TaskId task) {
  const Task& one = plan.tasks[task.index()];
  if (!is_put(plan, one) || one.writes.empty()) return false;
  return destination_of(plan, one) != rank_of(plan, task);
}

std::vector<TaskId> puts_of(const Plan& plan) {
  std::vector<TaskId> puts;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskId task(static_cast<std::int64_t>(i));
    if (goes_out(plan, task)) puts.push_back(task);
  }
  return puts;
}

Checked<Ok> check_nodes(const Plan& plan, const Nodes& nodes) {
  if (!nodes.have_network()) return Ok{};
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskId task(static_cast<std::int64_t>(i));
    if (goes_out(plan, task)) continue;
    const std::optional<RankId> other = far_rank(plan, nodes, task);
    if (!other) continue;
    return make_diag(DiagCode::G090, {{"task", i},
                                      {"via", print(plan.tasks[i].via)},
                                      {"from", rank_of(plan, task).value},
                                      {"to", other->value}});
  }
  return check_barriers(plan);
}

}  // namespace harpe::sync
