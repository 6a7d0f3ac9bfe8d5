#include "verify/cycle.h"

#include <algorithm>
#include <optional>
#include <string>

namespace harpe::verifier {
namespace {

// An edge from the waiting side: `node` of the waiting unit waits for `waits_for`.
struct Step {
  std::int32_t node = -1;
  std::int32_t waits_for = -1;
};

class CycleFinder {
 public:
  CycleFinder(const Order& order, const std::vector<std::int32_t>& left)
      : order_(order), stuck_(left.size()) {
    for (std::size_t unit = 0; unit < left.size(); ++unit) stuck_[unit] = left[unit] > 0;
    drop_followers();
  }

  // Searches backwards along waits from every stuck unit, no deeper than the best known cycle. So
  // the usual short cycle is found cheaply.
  std::vector<Step> shortest() {
    std::vector<Step> best;
    reached_by_.assign(stuck_.size(), -1);
    arrived_.resize(stuck_.size());
    for (std::size_t unit = 0; unit < stuck_.size(); ++unit) {
      if (!stuck_[unit]) continue;
      const auto limit = best.empty() ? stuck_.size() : best.size() - 1;
      std::vector<Step> found = search(static_cast<std::int32_t>(unit), limit);
      if (!found.empty()) best = std::move(found);
      if (best.size() == 1) break;
    }
    return best;
  }

 private:
  [[nodiscard]] std::vector<std::int32_t> nodes_of(std::int32_t unit) const {
    if (!order_.is_group(unit)) return {unit};
    const auto members = order_.members(unit);
    return {members.begin(), members.end()};
  }

  // Drops units for which no stuck unit waits. Every remaining unit lies on a cycle or between two,
  // so searches start there.
  void drop_followers() {
    std::vector<std::int32_t> waiting(stuck_.size(), 0);
    std::vector<std::int32_t> free;
    for (std::size_t unit = 0; unit < stuck_.size(); ++unit) {
      if (!stuck_[unit]) continue;
      for (const std::int32_t node : nodes_of(static_cast<std::int32_t>(unit))) {
        for (const std::int32_t later : order_.after(node)) {
          if (stuck_[static_cast<std::size_t>(order_.unit_of(later))]) ++waiting[unit];
        }
      }
      if (waiting[unit] == 0) free.push_back(static_cast<std::int32_t>(unit));
    }
    while (!free.empty()) {
      const std::int32_t unit = free.back();
      free.pop_back();
      stuck_[static_cast<std::size_t>(unit)] = false;
      for (const std::int32_t node : nodes_of(unit)) {
        for (const std::int32_t before : order_.before(node)) {
          const auto earlier = static_cast<std::size_t>(order_.unit_of(before));
          if (stuck_[earlier] && --waiting[earlier] == 0) {
            free.push_back(static_cast<std::int32_t>(earlier));
          }
        }
      }
    }
  }

  // The steps from `start` back to itself, at most `limit`; empty if there is no such cycle.
  std::vector<Step> search(std::int32_t start, std::size_t limit) {
    std::vector<std::int32_t> frontier = {start};
    for (std::size_t depth = 1; depth <= limit && !frontier.empty(); ++depth) {
      std::vector<std::int32_t> next;
      for (const std::int32_t unit : frontier) {
        for (const std::int32_t node : nodes_of(unit)) {
          for (const std::int32_t before : order_.before(node)) {
            const std::int32_t earlier = order_.unit_of(before);
            const auto at = static_cast<std::size_t>(earlier);
            if (!stuck_[at] || reached_by_[at] == start) continue;
            reached_by_[at] = start;
            arrived_[at] = {.node = node, .waits_for = before};
            if (earlier == start) return path_to(start);
            next.push_back(earlier);
          }
        }
      }
      frontier = std::move(next);
    }
    return {};
  }

  // In waiting order; the first step leaves `start`.
  [[nodiscard]] std::vector<Step> path_to(std::int32_t start) const {
    std::vector<Step> steps;
    std::int32_t unit = start;
    do {
      steps.push_back(arrived_[static_cast<std::size_t>(unit)]);
      unit = order_.unit_of(steps.back().node);
    } while (unit != start);
    std::ranges::reverse(steps);
    return steps;
  }

  const Order& order_;
  std::vector<bool> stuck_;
  std::vector<std::int32_t> reached_by_;  // per unit: the start of the last search that reached it
  std::vector<Step> arrived_;             // per unit: the step that leads to it
};

}  // namespace

Diag describe_cycle(const Plan& plan, const Words& words, const Order& order,
                    const std::vector<std::int32_t>& left) {
  const std::vector<Step> steps = CycleFinder(order, left).shortest();
  HP_CHECK(!steps.empty(), "units are left over and none waits for itself");
  const auto name = [&](std::int32_t node) {
    if (order.is_task(node)) return words.task(node);
    return "barrier " + std::to_string(static_cast<std::size_t>(node) - plan.tasks.size());
  };
  const auto reason = [&](const Step& step) -> std::string {
    if (!order.is_task(step.node) || !order.is_task(step.waits_for)) return "";
    if (order.queue_of(step.node) == order.queue_of(step.waits_for) &&
        order.position_of(step.waits_for) + 1 == order.position_of(step.node)) {
      return " (before it on lane " + std::to_string(order.queue_of(step.node)) + ")";
    }
    for (std::size_t id = 0; id < plan.syncs.size(); ++id) {
      if (plan.syncs[id].from.value == step.waits_for && plan.syncs[id].to.value == step.node) {
        return " (sync " + std::to_string(id) + ")";
      }
    }
    return "";
  };
  std::string text = name(steps.front().node);
  std::int32_t at = steps.front().node;
  for (const Step& step : steps) {
    if (step.node != at) text += " meets " + name(step.node) + ", which";
    text += " waits for " + name(step.waits_for) + reason(step);
    if (&step != &steps.back()) text += ", which";
    at = step.waits_for;
  }
  if (at != steps.front().node) text += ", which meets the first in its group";
  return make_diag(DiagCode::V301, {{"length", steps.size()}, {"cycle", text}});
}

}  // namespace harpe::verifier
