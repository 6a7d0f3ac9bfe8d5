#include "plan/work.h"

#include <algorithm>
#include <optional>

#include "ir/interpret.h"
#include "ir/mask.h"
#include "leaves/leaf.h"
#include "plan/slots.h"
#include "support/check.h"

namespace harpe {
namespace {

__extension__ using Wide = __int128;  // the number of pairs can exceed 64 bits

// clamp(query + shift, low, high), summed over the queries.
Wide sum_clamped(Interval queries, std::int64_t shift, std::int64_t low, std::int64_t high) {
  const std::int64_t rise = std::clamp(low - shift, queries.begin, queries.end);
  const std::int64_t stop = std::clamp(high - shift, rise, queries.end);
  const Wide rising = Wide{stop - rise} * (rise + stop - 1 + 2 * shift) / 2;
  return Wide{low} * (rise - queries.begin) + rising + Wide{high} * (queries.end - stop);
}

double count_seen(const Visibility& visible, Interval queries, Interval keys) {
  const Coverage coverage = classify(visible, queries, keys);
  if (coverage == Coverage::Empty) return 0;
  if (coverage == Coverage::Full) {
    return static_cast<double>(queries.size()) * static_cast<double>(keys.size());
  }
  const std::int64_t shown = std::clamp(visible.prefix, keys.begin, keys.end);
  Wide seen = Wide{queries.size()} * (shown - keys.begin);
  if (visible.low <= visible.high) {
    seen += sum_clamped(queries, visible.high + 1, shown, keys.end) -
            sum_clamped(queries, visible.low, shown, keys.end);
  }
  return static_cast<double>(seen);
}

bool has_axis(const Program& program, const Access& access, const std::string& axis) {
  for (const std::string& own : axis_names(*find_buffer(program, access.buffer))) {
    const auto renamed = std::ranges::find(access.renames, own, &Rename::axis);
    const bool through_route = renamed != access.renames.end() && !renamed->member.empty();
    if (renamed == access.renames.end() ? own == axis : !through_route && renamed->source == axis) {
      return true;
    }
  }
  return false;
}

// Positions are the second dimension of a tensor with positions; the operand's other own axes are
// heads.
bool is_position(const Program& program, const Access& operand, const std::string& axis) {
  constexpr std::size_t kWithPositions = 4;
  const Buffer& buffer = *find_buffer(program, operand.buffer);
  return buffer.dims.size() == kWithPositions && buffer.dims[1] == Dim(axis);
}

WorkShape shape_of_leaf(const Stmt& stmt) {
  const LeafContract* const contract = find_leaf_contract(stmt.leaf);
  return contract == nullptr ? WorkShape{} : contract->work;
}

WorkPart part_of(const Program& program, const Stmt& stmt, const std::string& axis) {
  const WorkShape shape = shape_of_leaf(stmt);
  const auto has = [&](const std::vector<Access>& accesses, std::size_t at) {
    return at < accesses.size() && has_axis(program, accesses[at], axis);
  };
  if (shape.has_positions && is_position(program, stmt.operands[0], axis)) return WorkPart::Rows;
  if (shape.summed && !has(stmt.targets, 0)) return *shape.summed;
  if (has(stmt.operands, 0)) return has(stmt.operands, 1) ? shape.both : shape.first;
  return has(stmt.operands, 1) ? shape.second : shape.neither;
}

// The last dimension of the first operand, for a leaf with positions.
double depth_inside(const Program& program, const Stmt& stmt) {
  if (!shape_of_leaf(stmt).has_positions) return 1;
  const std::vector<std::int64_t> shape =
      shape_of(program, *find_buffer(program, stmt.operands[0].buffer));
  return static_cast<double>(shape.back());
}

double volume_of(const TaskWork& work) {
  return work.batch * work.rows * work.columns * work.depth;
}

}  // namespace

// One statement: the cost of one point of its iteration space, and how many points a task has.
class PlanWork::Statement {
 public:
  Statement(const Program& program, const Blocks& blocks, const Nest& nest, const Stmt& stmt)
      : blocks_(blocks), mask_(resolve_masks(blocks, stmt)), depth_(depth_inside(program, stmt)) {
    Program alone = program;
    alone.nests = {nest};
    alone.nests[0].stmts = {stmt};
    cost_ = flops_of(alone);
    // Over the choices of a route, blocks are those of the chosen experts.
    const Route* const route = find_route_of(program, nest);
    const bool over_choices =
        route != nullptr && std::ranges::find(nest.over, route->choices[0]) != nest.over.end();
    for (const std::string& name : nest.over) {
      const bool picks = over_choices && name == route->choices.back();
      axes_.push_back(blocks.find_axis(picks ? route->slots.front() : name));
      parts_.push_back(part_of(program, stmt, name));
      cost_ /= static_cast<double>(table(axes_.back()).size);
    }
    // A point of a GEMM costs kFlopsOfPoint, or less if some slots of a route are unused.
    if (is_leaf(stmt.leaf, Leaf::Matmul)) taken_ = std::min(1.0, cost_ / kFlopsOfPoint);
  }

  [[nodiscard]] TaskWork of(const Task& task, const RefBytes& bytes) const {
    TaskWork sum;
    for (const Box& box : task.iter) {
      TaskWork one = of(box, bytes);
      if (sum.flops > 0 && volume_of(sum) > 0) {
        sum.batch *= 1 + volume_of(one) / volume_of(sum);
        sum.flops += one.flops;
        sum.masked = sum.masked || one.masked;
      } else {
        sum = one;
      }
    }
    return sum;
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

  [[nodiscard]] TaskWork of(const Box& box, const RefBytes& bytes) const {
    TaskWork work{.depth = depth_};
    std::map<int, std::vector<Interval>> along;
    double points = 1;
    std::size_t first = 0;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const int axis = axes_[i];
      const std::size_t count = table(axis).digits.size();
      HP_CHECK(first + count <= box.size(), "digits of an iteration box");
      const std::span<const Range> digits = std::span(box).subspan(first, count);
      first += count;
      const auto length = static_cast<double>(bytes.length(axis, digits));
      extent(work, parts_[i]) *= length;
      if (mask_ && (axis == mask_->query_axis || axis == mask_->key_axis)) {
        along[axis] = intervals_of(axis, digits);
      } else {
        points *= length;
      }
    }
    if (mask_) points *= seen_pairs(along, work);
    work.rows *= taken_;
    work.flops = points * cost_;
    return work;
  }

  [[nodiscard]] double seen_pairs(std::map<int, std::vector<Interval>>& along,
                                  TaskWork& work) const {
    double pairs = 0;
    double all = 0;
    for (const Interval& queries : along[mask_->query_axis]) {
      for (const Interval& keys : along[mask_->key_axis]) {
        pairs += count_seen(mask_->visible, queries, keys);
        all += static_cast<double>(queries.size()) * static_cast<double>(keys.size());
      }
    }
    work.masked = pairs < all;
    return pairs;
  }

  static double& extent(TaskWork& work, WorkPart part) {
    switch (part) {
      case WorkPart::Batch:
        return work.batch;
      case WorkPart::Rows:
        return work.rows;
      case WorkPart::Columns:
        return work.columns;
      case WorkPart::Depth:
        break;
    }
    return work.depth;
  }

  const Blocks& blocks_;
  std::optional<ResolvedMask> mask_;
  std::vector<int> axes_;
  std::vector<WorkPart> parts_;  // per axis
  double cost_ = 0;
  double depth_ = 1;
  double taken_ = 1;
};

PlanWork::PlanWork(const Plan& plan) {
  Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), "a plan's form fits its program");
  blocks_ = std::make_unique<Blocks>(*std::move(blocks));
  bytes_ = std::make_unique<RefBytes>(plan, *blocks_);
  for (const Nest& nest : plan.program.nests) {
    for (std::size_t i = 0; i < nest.stmts.size(); ++i) {
      statements_.try_emplace({nest.name, static_cast<int>(i)}, plan.program, *blocks_, nest,
                              nest.stmts[i]);
    }
  }
}

PlanWork::~PlanWork() = default;
PlanWork::PlanWork(PlanWork&&) noexcept = default;
PlanWork& PlanWork::operator=(PlanWork&&) noexcept = default;

TaskWork PlanWork::of(const Task& task) const {
  return statements_.at({task.nest, task.stmt}).of(task, *bytes_);
}

std::vector<double> work_of(const Plan& plan) {
  const PlanWork works(plan);
  std::vector<double> work(static_cast<std::size_t>(plan.mesh.ranks()));
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Compute) continue;
    const RankId rank = plan.queues[task.queue.index()].rank;
    work[rank.index()] += works.of(task).flops;
  }
  return work;
}

}  // namespace harpe
