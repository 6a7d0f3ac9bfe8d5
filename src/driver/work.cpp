#include "driver/work.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/blocks.h"
#include "ir/interpret.h"
#include "ir/mask.h"
#include "plan/slots.h"
#include "support/check.h"

namespace harpe {
namespace {

double count_seen(const Visibility& visible, Interval queries, Interval keys) {
  const Coverage coverage = classify(visible, queries, keys);
  if (coverage == Coverage::Empty) return 0;
  if (coverage == Coverage::Full) {
    return static_cast<double>(queries.size()) * static_cast<double>(keys.size());
  }
  const auto clamped = [&](std::int64_t key) { return std::clamp(key, keys.begin, keys.end); };
  std::int64_t seen = 0;
  for (std::int64_t query = queries.begin; query < queries.end; ++query) {
    const std::int64_t shown = clamped(visible.prefix);
    const std::int64_t begin = std::max(shown, clamped(query + visible.low));
    seen += shown - keys.begin;
    seen += std::max<std::int64_t>(0, clamped(query + visible.high + 1) - begin);
  }
  return static_cast<double>(seen);
}

// One statement: how much one point of its iteration space costs, and how many points a task has.
class StatementWork {
 public:
  StatementWork(const Program& program, const Blocks& blocks, const Nest& nest, const Stmt& stmt)
      : blocks_(blocks), mask_(resolve_masks(blocks, stmt)) {
    Program alone = program;
    alone.nests = {nest};
    alone.nests[0].stmts = {stmt};
    cost_ = flops_of(alone);
    // Over the choices of a route blocks are those of the experts that are chosen.
    const Route* const route = find_route_of(program, nest);
    const bool over_choices =
        route != nullptr && std::ranges::find(nest.over, route->choices[0]) != nest.over.end();
    for (const std::string& name : nest.over) {
      const bool picks = over_choices && name == route->choices.back();
      axes_.push_back(blocks.find_axis(picks ? route->slots.front() : name));
      cost_ /= static_cast<double>(table(axes_.back()).size);
    }
  }

  [[nodiscard]] double of(const Task& task) const {
    double points = 0;
    for (const Box& box : task.iter) points += points_in(box);
    return points * cost_;
  }

 private:
  [[nodiscard]] const AxisTable& table(int axis) const {
    return blocks_.axes()[static_cast<std::size_t>(axis)];
  }

  [[nodiscard]] std::vector<Interval> intervals_of(int axis, std::span<const Range> digits) const {
    std::vector<Interval> intervals;
    for (const std::int64_t block : blocks_along(blocks_, axis, digits)) {
      intervals.push_back(blocks_.interval(axis, block));
    }
    return intervals;
  }

  [[nodiscard]] double points_in(const Box& box) const {
    std::map<int, std::vector<Interval>> along;
    double points = 1;
    std::size_t first = 0;
    for (const int axis : axes_) {
      const std::size_t count = table(axis).digits.size();
      HP_CHECK(first + count <= box.size(), "digits of an iteration box");
      std::vector<Interval> intervals = intervals_of(axis, std::span(box).subspan(first, count));
      first += count;
      if (mask_ && (axis == mask_->query_axis || axis == mask_->key_axis)) {
        along[axis] = std::move(intervals);
        continue;
      }
      double length = 0;
      for (const Interval& interval : intervals) length += static_cast<double>(interval.size());
      points *= length;
    }
    if (!mask_) return points;
    double pairs = 0;
    for (const Interval& queries : along[mask_->query_axis]) {
      for (const Interval& keys : along[mask_->key_axis]) {
        pairs += count_seen(mask_->visible, queries, keys);
      }
    }
    return points * pairs;
  }

  const Blocks& blocks_;
  std::optional<ResolvedMask> mask_;
  std::vector<int> axes_;
  double cost_ = 0;
};

}  // namespace

std::vector<double> work_of(const Plan& plan) {
  const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), "a plan's form fits its program");
  std::map<std::pair<std::string, std::int32_t>, StatementWork> statements;
  for (const Nest& nest : plan.program.nests) {
    for (std::size_t i = 0; i < nest.stmts.size(); ++i) {
      statements.try_emplace({nest.name, static_cast<std::int32_t>(i)}, plan.program, *blocks, nest,
                             nest.stmts[i]);
    }
  }
  std::vector<double> work(static_cast<std::size_t>(plan.mesh.ranks()));
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Compute) continue;
    const RankId rank = plan.lanes[task.lane.index()].rank;
    work[rank.index()] += statements.at({task.nest, task.stmt}).of(task);
  }
  return work;
}

}  // namespace harpe
