#include "lower/scatter.h"

#include <algorithm>
#include <set>

#include "lower/axis_sets.h"

namespace harpe {
namespace {

const BufferTable& table(const Blocks& blocks, const NestStmt& stmt, int target) {
  return blocks.buffers()[static_cast<std::size_t>(stmt.targets[static_cast<std::size_t>(target)])];
}

bool places_on(const BufferTable& buffer, const std::vector<int>& axes) {
  return std::ranges::any_of(buffer.home, [&](const std::vector<int>& home) {
    return std::ranges::any_of(
        home, [&](int axis) { return std::ranges::find(axes, axis) != axes.end(); });
  });
}

bool places_digit(const BufferTable& buffer, int digit) {
  const auto at = std::ranges::find(buffer.digits, digit);
  return at != buffer.digits.end() &&
         !buffer.home[static_cast<std::size_t>(at - buffer.digits.begin())].empty();
}

bool in_every_target(const Blocks& blocks, const NestStmt& stmt, const StateGroup& group,
                     int digit) {
  return std::ranges::all_of(group.targets, [&](int target) {
    const auto& digits = table(blocks, stmt, target).digits;
    return std::ranges::find(digits, digit) != digits.end();
  });
}

// A digit over which to scatter a reduction across `axes`: a loop that rotates over them, else any
// unbound one.
int free_digit(const Blocks& blocks, const NestSpace& space, const NestStmt& stmt,
               const StateGroup& group, const std::vector<int>& axes, const std::set<int>& taken) {
  int best = -1;
  const BufferTable& first = table(blocks, stmt, group.targets.front());
  for (const int digit : first.digits) {
    const auto d = static_cast<std::size_t>(digit);
    if (blocks.digits()[d].extent != blocks.extent(axes) || !space.par[d].empty()) continue;
    if (places_digit(first, digit) || taken.contains(digit)) continue;
    if (!in_every_target(blocks, stmt, group, digit)) continue;
    const int loop = space.loop_of[d];
    if (loop >= 0 && space.loops[static_cast<std::size_t>(loop)].skew_axes == axes) return digit;
    if (best < 0) best = digit;
  }
  return best;
}

struct Reduction {  // a drain level over whose axes a parallel digit must be gathered
  int digit;
  std::vector<int> axes;
  int level;
  bool disjoint;  // the targets have the digit: parts are disjoint
};

std::vector<Reduction> replicated_reductions(const Blocks& blocks, const NestSpace& space,
                                             const NestStmt& stmt, const StateGroup& group) {
  std::vector<Reduction> found;
  const BufferTable& first = table(blocks, stmt, group.targets.front());
  for (std::size_t level = 0; level < group.chain.size(); ++level) {
    const NestMove& move = *group.chain[level];
    // Relays end at one rank, and under a one-shot every rank adds all contributions.
    if (move.spec->how == How::Relay || move.spec->how == How::OneShot) continue;
    for (std::size_t digit = 0; digit < space.par.size(); ++digit) {
      const std::vector<int>& axes = space.par[digit];
      if (axes.empty() || blocks.extent(axes) == 1 || !is_subset(axes, move.over)) continue;
      if (places_on(first, axes) || places_digit(first, static_cast<int>(digit))) continue;
      const bool disjoint = in_every_target(blocks, stmt, group, static_cast<int>(digit));
      found.push_back({static_cast<int>(digit), axes, static_cast<int>(level), disjoint});
    }
  }
  return found;
}

std::string difference(const Blocks& blocks, const NestSpace& space, const NestStmt& stmt,
                       int first, int second) {
  std::vector<const NestMove*> a;
  std::vector<const NestMove*> b;
  for (const NestMove& move : space.moves) {
    if (move.spec->kind != MoveKind::Drain) continue;
    if (move.buffer == stmt.targets[static_cast<std::size_t>(first)]) a.push_back(&move);
    if (move.buffer == stmt.targets[static_cast<std::size_t>(second)]) b.push_back(&move);
  }
  const auto same_move = [](const NestMove* x, const NestMove* y) {
    Move left = *x->spec;
    left.buffer = y->spec->buffer;
    return left == *y->spec && x->position == y->position;
  };
  if (!std::ranges::equal(a, b, same_move)) return "their drains differ";
  const auto placed = [&](int target) {
    std::set<std::pair<int, std::vector<int>>> at;
    const BufferTable& buffer = table(blocks, stmt, target);
    for (std::size_t i = 0; i < buffer.digits.size(); ++i) {
      if (!buffer.home[i].empty()) at.emplace(buffer.digits[i], buffer.home[i]);
    }
    return at;
  };
  const bool same_parts =
      table(blocks, stmt, first).partial_axes == table(blocks, stmt, second).partial_axes;
  return placed(first) == placed(second) && same_parts ? "" : "their homes differ";
}

}  // namespace

std::vector<ScatterPin> scatter_pins(const Blocks& blocks, const NestSpace& space,
                                     const NestStmt& stmt, const StateGroup& group) {
  std::vector<ScatterPin> pins;
  std::set<int> taken;
  for (const Reduction& reduction : replicated_reductions(blocks, space, stmt, group)) {
    const int digit = reduction.disjoint
                          ? reduction.digit
                          : free_digit(blocks, space, stmt, group, reduction.axes, taken);
    if (digit < 0) continue;
    taken.insert(digit);
    pins.push_back({digit, reduction.axes, reduction.level});
  }
  return pins;
}

namespace {

// The common axis of all targets with the largest blocks; -1 if none can be split further.
int widest_common_axis(const NormalForm& form, const Blocks& blocks, const NestStmt& stmt,
                       const StateGroup& group) {
  int widest = -1;
  std::int64_t block = 0;
  for (const int axis : table(blocks, stmt, group.targets.front()).axes) {
    const AxisTable& candidate = blocks.axes()[static_cast<std::size_t>(axis)];
    const bool tabled = std::ranges::any_of(form.layouts, [&](const Layout& layout) {
      return layout.axis == candidate.name && layout.map.function == "table";
    });
    const bool common = std::ranges::all_of(group.targets, [&](int target) {
      const auto& axes = table(blocks, stmt, target).axes;
      return std::ranges::find(axes, axis) != axes.end();
    });
    if (tabled || !common || candidate.size / candidate.blocks <= block) continue;
    widest = axis;
    block = candidate.size / candidate.blocks;
  }
  return widest;
}

// `form` with one more digit of `axis`, below its explicit digits.
NormalForm with_digit(NormalForm form, const Program& program, const Blocks& blocks,
                      const std::string& axis, std::int64_t extent) {
  auto split = std::ranges::find(form.splits, axis, &Split::axis);
  if (split == form.splits.end()) {
    std::ptrdiff_t at = 0;  // in the order of the program's axes
    for (const Axis* other : axes_of(program)) {
      if (other->name == axis) break;
      if (find_split(form, other->name) != nullptr) ++at;
    }
    split = form.splits.insert(form.splits.begin() + at,
                               Split{axis, {{.name = "rest_" + axis, .extent = std::nullopt}}});
  }
  std::string fresh = "scatter_" + axis;
  while (blocks.find_digit(fresh) >= 0) fresh += "_";
  const bool has_rest = !split->digits.back().extent;
  split->digits.insert(split->digits.end() - (has_rest ? 1 : 0),
                       Digit{.name = fresh, .extent = extent});
  return form;
}

}  // namespace

std::optional<NormalForm> with_scatter_digit(const NormalForm& form, const Program& program,
                                             const Blocks& blocks, const NestSpace& space) {
  for (const NestStmt& stmt : space.stmts) {
    const auto groups = state_groups(blocks, space, stmt, true);
    if (!groups.ok()) return std::nullopt;  // derive reports it
    for (const StateGroup& group : *groups) {
      std::set<int> taken;
      for (const Reduction& reduction : replicated_reductions(blocks, space, stmt, group)) {
        if (reduction.disjoint) continue;
        if (const int digit = free_digit(blocks, space, stmt, group, reduction.axes, taken);
            digit >= 0) {
          taken.insert(digit);
          continue;
        }
        const int axis = widest_common_axis(form, blocks, stmt, group);
        if (axis < 0) continue;
        return with_digit(form, program, blocks, blocks.axes()[static_cast<std::size_t>(axis)].name,
                          blocks.extent(reduction.axes));
      }
    }
  }
  return std::nullopt;
}

Checked<std::vector<StateGroup>> state_groups(const Blocks& blocks, const NestSpace& space,
                                              const NestStmt& stmt, bool tied) {
  std::vector<StateGroup> groups;
  for (int target = 0; target < static_cast<int>(stmt.targets.size()); ++target) {
    if (tied && stmt.stmt->monoid == Monoid::Lse && target > 0) {
      if (const std::string reason = difference(blocks, space, stmt, 0, target); !reason.empty()) {
        return make_diag(DiagCode::F219, {{"first", table(blocks, stmt, 0).name},
                                          {"second", table(blocks, stmt, target).name},
                                          {"monoid", print(stmt.stmt->monoid)},
                                          {"reason", reason}});
      }
      groups.front().targets.push_back(target);
      continue;
    }
    StateGroup group{.targets = {target}, .chain = {}};
    for (const NestMove& move : space.moves) {
      if (move.spec->kind == MoveKind::Drain &&
          move.buffer == stmt.targets[static_cast<std::size_t>(target)]) {
        group.chain.push_back(&move);
      }
    }
    std::ranges::stable_sort(group.chain, std::ranges::greater{}, &NestMove::position);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace harpe
