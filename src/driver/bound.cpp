#include "driver/bound.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "ir/leaf_contract.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr double kPointwise = 4;  // roundings of a pointwise leaf, an exponential among them

double size_of_dim(const Program& program, const Buffer& buffer, std::size_t dim) {
  return static_cast<double>(shape_of(program, buffer)[dim]);
}

const Buffer& buffer_of(const Program& program, const Access& access) {
  const Buffer* buffer = find_buffer(program, access.buffer);
  HP_CHECK(buffer != nullptr, "statement names buffer `" + access.buffer + "`");
  return *buffer;
}

// The nest's axes an access ranges over.
std::set<std::string> axes_of(const Program& program, const Access& access) {
  std::set<std::string> axes;
  for (const std::string& name : axis_names(buffer_of(program, access))) {
    const auto rename = std::ranges::find(access.renames, name, &Rename::axis);
    axes.insert(rename == access.renames.end() ? name : rename->source);
  }
  return axes;
}

// Axes that operands have and the target has not: what is summed over.
std::set<std::string> reduced_axes(const Program& program, const Producer& producer) {
  const std::set<std::string> kept = axes_of(program, producer.stmt->targets[producer.target]);
  std::set<std::string> reduced;
  for (const Access& operand : producer.stmt->operands) {
    for (const std::string& name : axes_of(program, operand)) {
      if (!kept.contains(name)) reduced.insert(name);
    }
  }
  return reduced;
}

bool has_scores(const Stmt& stmt) {
  const LeafContract* leaf = find_leaf_contract(stmt.leaf);
  return leaf != nullptr && leaf->has_scores();
}

// By how much a relative rounding of an operand grows: scores and sums are exponents.
double growth_of(const Stmt& stmt, std::size_t operand, const Magnitudes& magnitudes) {
  if (!has_scores(stmt)) return 1;
  if (operand < 2) return magnitudes.score;
  const bool is_sums = static_cast<int>(operand) == find_leaf_contract(stmt.leaf)->sums;
  return is_sums ? magnitudes.logsum : 1;
}

// The length of a contraction over the nest's axes `names`.
double points_of(const Program& program, const std::set<std::string>& names) {
  double length = 1;
  for (const std::string& name : names) {
    if (const Axis* axis = find_axis(program, name)) length *= static_cast<double>(size_of(*axis));
  }
  return length;
}

// A sum of products with weights e^(score - logsum): their exponents are dot products over the
// features, rounded like the sums they are taken from, and what they multiply is another.
double weighted_term(const Program& program, const Producer& producer,
                     const Magnitudes& magnitudes) {
  const Stmt& stmt = *producer.stmt;
  const Buffer& query = buffer_of(program, stmt.operands[0]);
  const Buffer& value = buffer_of(program, stmt.operands[2]);
  const double head_dim = size_of_dim(program, query, query.dims.size() - 1);
  const double value_dim = size_of_dim(program, value, value.dims.size() - 1);
  return std::sqrt(head_dim) * magnitudes.score + magnitudes.logsum + std::sqrt(value_dim);
}

double leaf_term(const Program& program, const Producer& producer, double accumulator,
                 const Magnitudes& magnitudes) {
  const std::set<std::string> reduced = reduced_axes(program, producer);
  const LeafContract* const leaf = find_leaf_contract(producer.stmt->leaf);
  if (leaf != nullptr && leaf->pointwise) return kPointwise * accumulator;
  if (producer.stmt->monoid == Monoid::Store && reduced.empty()) return 0;
  if (producer.stmt->monoid == Monoid::Lse) {
    // Errors of the scores act on every weight; then the weights are summed over the keys.
    const Buffer& query = buffer_of(program, producer.stmt->operands[0]);
    const Buffer& key = buffer_of(program, producer.stmt->operands[1]);
    const double head_dim = size_of_dim(program, query, query.dims.size() - 1);
    const double keys = size_of_dim(program, key, 1);
    return (std::sqrt(head_dim) * magnitudes.score + std::sqrt(keys)) * accumulator;
  }
  if (has_scores(*producer.stmt)) {
    // The features that other targets lack are summed inside the weights.
    std::set<std::string> summed;
    for (const std::string& name : reduced) {
      if (std::ranges::find(producer.nest->over, name) != producer.nest->over.end()) {
        summed.insert(name);
      }
    }
    return (weighted_term(program, producer, magnitudes) + std::sqrt(points_of(program, summed))) *
           accumulator;
  }
  return std::sqrt(points_of(program, reduced)) * accumulator;
}

// Contributions to one output block: the blocks of the axes it is summed over.
double count_folds(const Plan& plan, const Producer& producer) {
  double folds = 1;
  for (const std::string& name : reduced_axes(plan.program, producer)) {
    const Split* split = find_split(plan.form, name);
    if (split == nullptr) continue;
    for (const Digit& digit : split->digits) folds *= static_cast<double>(digit.extent.value_or(1));
  }
  return folds;
}

double ranks_along(const Mesh& mesh, const MeshRef& axes) {
  double ranks = 1;
  for (const std::string& name : axes) {
    if (const int axis = find_axis(mesh, name); axis >= 0) {
      ranks *= static_cast<double>(mesh.axes[static_cast<std::size_t>(axis)].size);
    }
  }
  return ranks;
}

// u of the widest step states take: the narrowest type any slot holds them in. Targets of one
// statement are one state (o is combined with weights made of l).
double state_roundoff(const Plan& plan, const Stmt& stmt) {
  double roundoff = 0;
  for (const Alloc& alloc : plan.allocs) {
    const bool holds_state =
        alloc.level == Level::Acc || alloc.level == Level::Sum || alloc.level == Level::Drain;
    if (holds_state &&
        std::ranges::find(stmt.targets, alloc.buffer, &Access::buffer) != stmt.targets.end()) {
      roundoff = std::max(roundoff, unit_roundoff(alloc.dtype));
    }
  }
  if (roundoff > 0) return roundoff;
  // Stored at once: what is added up on the way is as wide as the operands ask for.
  if (stmt.monoid == Monoid::Store && !stmt.operands.empty()) {
    return unit_roundoff(state_dtype(buffer_of(plan.program, stmt.operands[0]).dtype));
  }
  for (const Access& target : stmt.targets) {
    roundoff =
        std::max(roundoff, unit_roundoff(state_dtype(buffer_of(plan.program, target).dtype)));
  }
  return roundoff;
}

// A travelling sum is rounded at every hop, and a last one takes it home unless its loop began at
// the next rank's block (Theorem 3).
double count_hops(const Mesh& mesh, const Move& move, const For* loop) {
  const double ranks = ranks_along(mesh, move.over);
  const bool ends_home = loop != nullptr && loop->offset % static_cast<std::int64_t>(ranks) == 1;
  return std::max(1.0, ends_home ? ranks - 1 : ranks);
}

double wire_term(const Plan& plan, const Producer& producer, double state,
                 const Magnitudes& magnitudes) {
  const NestForm* nest = find_nest(plan.form, producer.nest->name);
  if (nest == nullptr) return 0;
  const Mesh mesh = refined(plan.mesh, plan.form);
  const Stmt& stmt = *producer.stmt;
  const Buffer& output = buffer_of(plan.program, stmt.targets[producer.target]);
  double term = 0;
  const For* loop = nullptr;  // the innermost around the move
  for (const NestItem& item : nest->items) {
    if (const auto* inner = std::get_if<For>(&item)) loop = inner;
    const auto* move = std::get_if<Move>(&item);
    if (move == nullptr) continue;
    const bool sums = move->wire || stmt.monoid != Monoid::Store;  // else blocks only move
    if (move->kind == MoveKind::Drain && move->buffer == output.name && sums) {
      const double hops = move->how == How::Relay ? count_hops(mesh, *move, loop) : 1;
      const bool as_state = !move->wire && stmt.monoid == Monoid::Lse;
      term += hops * (as_state ? state : unit_roundoff(move->wire.value_or(output.dtype)));
    }
    if (move->kind == MoveKind::Stage && move->wire) {
      for (std::size_t i = 0; i < stmt.operands.size(); ++i) {
        if (stmt.operands[i].buffer != move->buffer) continue;
        term += unit_roundoff(*move->wire) * growth_of(stmt, i, magnitudes);
      }
    }
  }
  return term;
}

// Homes that keep partial states round each of them before they are combined.
double part_term(const Plan& plan, const Producer& producer) {
  const Buffer& output = buffer_of(plan.program, producer.stmt->targets[producer.target]);
  const Place* const home = find_place(plan.form, output.name);
  const bool keeps_parts = home != nullptr && !home->partial.empty();
  return keeps_parts ? unit_roundoff(output.dtype) : 0;
}

ErrorBound bound_after(const Plan& plan, const Producer& producer, const Magnitudes& magnitudes) {
  const Stmt& stmt = *producer.stmt;
  ErrorBound bound;
  const DType dtype = buffer_of(plan.program, stmt.targets[producer.target]).dtype;
  if (!is_floating(dtype)) return bound;  // choices are compared, not rounded
  const double state = state_roundoff(plan, stmt);
  const double growth = stmt.monoid == Monoid::Lse ? magnitudes.logsum : 1;
  bound.leaf = leaf_term(plan.program, producer, state, magnitudes);
  if (stmt.monoid != Monoid::Store) {
    bound.states = std::sqrt(count_folds(plan, producer)) * state * growth;
  }
  bound.wire = wire_term(plan, producer, state, magnitudes) + part_term(plan, producer);
  double squares = 0;  // what several operands bring with them is independent
  for (const Access& operand : stmt.operands) {
    const auto earlier = find_producer(plan.program, operand.buffer, producer.ordinal);
    if (!earlier) continue;
    const double expected = bound_after(plan, *earlier, magnitudes).expected();
    squares += expected * expected;
  }
  bound.operands = std::sqrt(squares);
  const bool moves = stmt.leaf == "copy" || stmt.leaf == "gather_rows";
  const bool kept = moves && buffer_of(plan.program, stmt.operands[0]).dtype == dtype;
  bound.output = kept ? 0 : unit_roundoff(dtype);
  return bound;
}

}  // namespace

ErrorBound bound_of(const Plan& plan, const std::string& buffer, const Magnitudes& magnitudes) {
  return bound_after(plan, producer_of(plan.program, buffer), magnitudes);
}

}  // namespace harpe
