#include "driver/work.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/blocks.h"
#include "ir/interpret.h"
#include "ir/mask.h"
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
    const Route* const route = find_route_of(program, nest);
    for (const std::string& name : nest.over) {
      axes_.push_back(extent_of(program, nest, route, name));
      cost_ /= static_cast<double>(table(axes_.back().axis).size) * axes_.back().share;
    }
  }

  [[nodiscard]] double of(const Task& task) const {
    double points = 0;
    for (const Box& box : task.iter) points += points_in(box);
    return points * cost_;
  }

 private:
  // An axis of the iteration space, and which share of its positions counts.
  struct Extent {
    int axis = 0;
    double share = 1;
  };

  // Over the choices of a route a token meets Kc of the experts; of an expert's slots, T Kc / E are
  // taken when all are chosen alike.
  [[nodiscard]] Extent extent_of(const Program& program, const Nest& nest, const Route* route,
                                 const std::string& name) const {
    const auto size = [&](const std::string& axis) {
      return static_cast<double>(size_of(*find_axis(program, axis)));
    };
    const auto over = [&](const std::string& axis) {
      return std::ranges::find(nest.over, axis) != nest.over.end();
    };
    if (route != nullptr && name == route->choices.back() && over(route->choices.front())) {
      return {.axis = blocks_.find_axis(route->slots.front()),
              .share = size(name) / size(route->slots.front())};
    }
    Extent extent{.axis = blocks_.find_axis(name)};
    for (const Decl& decl : program.decls) {
      const auto* const fills = std::get_if<Route>(&decl);
      if (fills == nullptr || fills->slots.back() != name) continue;
      extent.share = size(fills->choices.front()) * size(fills->choices.back()) /
                     (size(fills->slots.front()) * size(name));
    }
    return extent;
  }

  [[nodiscard]] const AxisTable& table(int axis) const {
    return blocks_.axes()[static_cast<std::size_t>(axis)];
  }

  // Of every axis the blocks that the box selects.
  [[nodiscard]] std::vector<Interval> intervals_of(int axis, std::span<const Range> digits) const {
    std::vector<std::int64_t> selected = {0};
    for (std::size_t i = 0; i < digits.size(); ++i) {
      const auto digit = static_cast<std::size_t>(table(axis).digits[i]);
      std::vector<std::int64_t> longer;
      for (const std::int64_t block : selected) {
        for (std::int32_t value = digits[i].lo; value < digits[i].hi; ++value) {
          longer.push_back(block * blocks_.digits()[digit].extent + value);
        }
      }
      selected = std::move(longer);
    }
    std::vector<Interval> intervals;
    for (const std::int64_t block : selected) intervals.push_back(blocks_.interval(axis, block));
    return intervals;
  }

  [[nodiscard]] double points_in(const Box& box) const {
    std::map<int, std::vector<Interval>> along;
    double points = 1;
    std::size_t first = 0;
    for (const auto& [axis, share] : axes_) {
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
      points *= length * share;
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
  std::vector<Extent> axes_;
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
