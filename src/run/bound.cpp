#include "run/bound.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "leaves/leaf.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr double kPointwise = 4;  // roundings of a pointwise leaf, an exponential included

double size_of_dim(const Program& program, const Buffer& buffer, std::size_t dim) {
  return static_cast<double>(shape_of(program, buffer)[dim]);
}

const Buffer& buffer_of(const Program& program, const Access& access) {
  const Buffer* buffer = find_buffer(program, access.buffer);
  HP_CHECK(buffer != nullptr, "statement names buffer `" + access.buffer + "`");
  return *buffer;
}

// The axes of the nest that an access ranges over.
std::set<std::string> axes_of(const Program& program, const Access& access) {
  std::set<std::string> axes;
  for (const std::string& name : axis_names(buffer_of(program, access))) {
    const auto rename = std::ranges::find(access.renames, name, &Rename::axis);
    axes.insert(rename == access.renames.end() ? name : rename->source);
  }
  return axes;
}

// The axes that operands have and the target lacks: those that are summed over.
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

const ScoreSizes& scores_of(const Stmt& stmt, const Magnitudes& magnitudes) {
  const auto found = magnitudes.scores.find(stmt.targets[0].buffer);
  return found == magnitudes.scores.end() ? magnitudes.other_scores : found->second;
}

// The growth of a relative rounding of an operand: scores and sums are exponents.
double growth_of(const Stmt& stmt, std::size_t operand, const Magnitudes& magnitudes) {
  if (!has_scores(stmt)) return 1;
  const ScoreSizes& sizes = scores_of(stmt, magnitudes);
  if (operand < 2) return sizes.score;
  const bool is_sums = static_cast<int>(operand) == find_leaf_contract(stmt.leaf)->sums;
  return is_sums ? sizes.logsum : 1;
}

// The length of a contraction over the nest's axes `names`.
double points_of(const Program& program, const std::set<std::string>& names) {
  double length = 1;
  for (const std::string& name : names) {
    if (const Axis* axis = find_axis(program, name)) length *= static_cast<double>(size_of(*axis));
  }
  return length;
}

// Maximum loss near 0 of one rounding to a type.
double underflow_of(DType type) { return unit_roundoff(type) * smallest_normal(type); }

double largest_of(const Program& program, const Access& access, const Magnitudes& magnitudes) {
  const auto found = magnitudes.largest.find(buffer_of(program, access).name);
  return found == magnitudes.largest.end() ? 1 : found->second;
}

// Elements of the features over which a leaf with scores multiplies its operands.
double features_of(const Program& program, const Stmt& stmt) {
  const Buffer& query = buffer_of(program, stmt.operands[0]);
  const Buffer& value = buffer_of(program, stmt.operands[2]);
  return size_of_dim(program, query, query.dims.size() - 1) *
         size_of_dim(program, value, value.dims.size() - 1);
}

// Elements of a row of add_rms_norm.
double norm_length(const Program& program, const Stmt& stmt) {
  return size_of_dim(program, buffer_of(program, stmt.operands[2]), 0);
}

// y of add_rms_norm depends on the stored, rounded sums and on the sum of their squares.
double norm_term(const Program& program, const Producer& producer, double accumulator) {
  if (producer.target == 0) return kPointwise * accumulator;
  const Stmt& stmt = *producer.stmt;
  const DType stored = buffer_of(program, stmt.targets[0]).dtype;
  return unit_roundoff(stored) + (kPointwise + std::sqrt(norm_length(program, stmt))) * accumulator;
}

// The largest slope of a pointwise leaf in one operand, if the product of the other operands is at
// most `others`.
double slope_of(const Stmt& stmt, std::size_t operand, double others,
                const Magnitudes& magnitudes) {
  constexpr double kSteepest = 1.13;  // of silu, relu and gelu
  if (is_leaf(stmt.leaf, Leaf::Add)) return 1;
  if (!is_leaf(stmt.leaf, Leaf::RmsScale)) return kSteepest * others;
  const auto known = magnitudes.roots.find(stmt.targets[0].buffer);
  const double root =
      known == magnitudes.roots.end() ? std::sqrt(attribute_of(stmt, "eps", 1e-6)) : known->second;
  if (operand == 0) return 1 / root;
  return others / (2 * attribute_of(stmt, "length", 1) * root * root * root);
}

// The same for add_rms_norm. An element of y changes with its own sum and with the root, whose
// effect is at most as large. The largest element of a row is sqrt(length) times its root.
double norm_slope(const Program& program, const Producer& producer, std::size_t operand,
                  const Magnitudes& magnitudes) {
  const Stmt& stmt = *producer.stmt;
  const bool of_weight = operand == 2;
  if (producer.target == 0) return of_weight ? 0 : 1;
  if (of_weight) return std::sqrt(norm_length(program, stmt));
  const auto known = magnitudes.roots.find(stmt.targets[0].buffer);
  const double root =
      known == magnitudes.roots.end() ? std::sqrt(attribute_of(stmt, "eps", 1e-6)) : known->second;
  return 2 * largest_of(program, stmt.operands[2], magnitudes) / root;
}

// Bound on the growth of an absolute error of an operand's elements, independent of each other, in
// the target: the largest factor, times the square root of the number of addends.
double gain_of(const Program& program, const Producer& producer, std::size_t operand,
               const Magnitudes& magnitudes) {
  const Stmt& stmt = *producer.stmt;
  if (is_leaf(stmt.leaf, Leaf::AddRmsNorm)) {
    return norm_slope(program, producer, operand, magnitudes);
  }
  const LeafContract* const leaf = find_leaf_contract(stmt.leaf);
  if (leaf == nullptr || !leaf->computes || leaf->choices != LeafContract::kNoIndex) return 1;
  double others = 1;
  for (std::size_t i = 0; i < stmt.operands.size(); ++i) {
    if (i == operand || static_cast<int>(i) == leaf->index) continue;
    const double largest = largest_of(program, stmt.operands[i], magnitudes);
    // With weights, the other operands are exponents as well as factors.
    others *= leaf->has_scores() ? std::max(1.0, largest) : largest;
  }
  if (leaf->pointwise) return slope_of(stmt, operand, others, magnitudes);
  const double length = points_of(program, reduced_axes(program, producer));
  return std::sqrt(length * (leaf->has_scores() ? features_of(program, stmt) : 1)) * others;
}

// A sum with weights e^(score - logsum): the exponents are dot products over the features and carry
// the roundings of their sums; the factors of the weights are dot products of their own.
double weighted_term(const Program& program, const Producer& producer,
                     const Magnitudes& magnitudes) {
  const Stmt& stmt = *producer.stmt;
  const Buffer& query = buffer_of(program, stmt.operands[0]);
  const Buffer& value = buffer_of(program, stmt.operands[2]);
  const double head_dim = size_of_dim(program, query, query.dims.size() - 1);
  const double value_dim = size_of_dim(program, value, value.dims.size() - 1);
  const ScoreSizes& sizes = scores_of(stmt, magnitudes);
  return std::sqrt(head_dim) * sizes.score + sizes.logsum + std::sqrt(value_dim);
}

double leaf_term(const Program& program, const Producer& producer, double accumulator,
                 const Magnitudes& magnitudes) {
  const std::set<std::string> reduced = reduced_axes(program, producer);
  const LeafContract* const leaf = find_leaf_contract(producer.stmt->leaf);
  if (leaf != nullptr && leaf->pointwise) return kPointwise * accumulator;
  if (is_leaf(producer.stmt->leaf, Leaf::AddRmsNorm)) {
    return norm_term(program, producer, accumulator);
  }
  if (producer.stmt->monoid == Monoid::Store && reduced.empty()) return 0;
  if (producer.stmt->monoid == Monoid::Lse) {
    // Errors of the scores affect every weight; then the weights are summed over the keys.
    const Buffer& query = buffer_of(program, producer.stmt->operands[0]);
    const Buffer& key = buffer_of(program, producer.stmt->operands[1]);
    const double head_dim = size_of_dim(program, query, query.dims.size() - 1);
    const double keys = size_of_dim(program, key, 1);
    const double score = scores_of(*producer.stmt, magnitudes).score;
    return (std::sqrt(head_dim) * score + std::sqrt(keys)) * accumulator;
  }
  if (has_scores(*producer.stmt)) {
    // Features that other targets lack are summed inside the weights.
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

// The number of contributions to one output block: the blocks of the axes that are summed over.
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

// The coarsest type of a statement's states: the narrowest type of any of their slots. The targets
// of one statement are one state (o is combined with weights made from l).
DType state_type(const Plan& plan, const Stmt& stmt) {
  std::optional<DType> type;
  const auto take = [&](DType other) {
    if (!type || unit_roundoff(other) > unit_roundoff(*type)) type = other;
  };
  for (const Alloc& alloc : plan.allocs) {
    const bool holds_state =
        alloc.level == Level::Acc || alloc.level == Level::Sum || alloc.level == Level::Drain;
    if (holds_state &&
        std::ranges::find(stmt.targets, alloc.buffer, &Access::buffer) != stmt.targets.end()) {
      take(alloc.dtype);
    }
  }
  if (type && is_floating(*type)) return *type;
  // Stored without folds: the accumulator has the operands' state type.
  if (stmt.monoid == Monoid::Store && !stmt.operands.empty()) {
    return state_dtype(buffer_of(plan.program, stmt.operands[0]).dtype);
  }
  type.reset();
  for (const Access& target : stmt.targets) {
    take(state_dtype(buffer_of(plan.program, target).dtype));
  }
  return *type;
}

// The number of roundings of a travelling sum: one per hop. A last hop takes it home, unless its
// loop began at the next rank's block (Theorem 3).
double count_hops(const Mesh& mesh, const Move& move, const For* loop) {
  const double ranks = ranks_along(mesh, move.over);
  const bool ends_home = loop != nullptr && loop->offset % static_cast<std::int64_t>(ranks) == 1;
  return std::max(1.0, ends_home ? ranks - 1 : ranks);
}

// The error added by transfers of states and operands: relative, and near 0.
struct WireTerms {
  double relative = 0;
  double underflow = 0;
};

WireTerms wire_terms(const Plan& plan, const Producer& producer, DType state,
                     const Magnitudes& magnitudes) {
  WireTerms terms;
  const NestForm* nest = find_nest(plan.form, producer.nest->name);
  if (nest == nullptr) return terms;
  const Mesh mesh = refined(plan.mesh, plan.form);
  const Stmt& stmt = *producer.stmt;
  const Buffer& output = buffer_of(plan.program, stmt.targets[producer.target]);
  const For* loop = nullptr;  // the innermost around the move
  for (const NestItem& item : nest->items) {
    if (const auto* inner = std::get_if<For>(&item)) loop = inner;
    const auto* move = std::get_if<Move>(&item);
    if (move == nullptr) continue;
    const bool sums = move->wire || stmt.monoid != Monoid::Store;  // else blocks are only moved
    if (move->kind == MoveKind::Drain && move->buffer == output.name && sums) {
      const bool relays = move->how == How::Relay;
      const double hops = relays ? count_hops(mesh, *move, loop) : 1;
      const bool as_state = !move->wire && stmt.monoid == Monoid::Lse;
      const DType type = as_state ? state : move->wire.value_or(output.dtype);
      terms.relative += hops * unit_roundoff(type);
      // The parts of a sum are smaller than the sum, but lose as much near 0.
      const double parts = relays ? hops : std::sqrt(ranks_along(mesh, move->over));
      terms.underflow += parts * underflow_of(type);
    }
    if (move->kind == MoveKind::Stage && move->wire) {
      for (std::size_t i = 0; i < stmt.operands.size(); ++i) {
        if (stmt.operands[i].buffer != move->buffer) continue;
        terms.relative += unit_roundoff(*move->wire) * growth_of(stmt, i, magnitudes);
        terms.underflow +=
            underflow_of(*move->wire) * gain_of(plan.program, producer, i, magnitudes);
      }
    }
  }
  return terms;
}

// Homes with partial states round each state before they are combined.
WireTerms part_terms(const Plan& plan, const Producer& producer) {
  const Buffer& output = buffer_of(plan.program, producer.stmt->targets[producer.target]);
  const Place* const home = find_place(plan.form, output.name);
  if (home == nullptr || home->partial.empty()) return {};
  const Mesh mesh = refined(plan.mesh, plan.form);
  double parts = 1;
  for (const PartialHome& partial : home->partial) parts *= ranks_along(mesh, partial.axes);
  return {.relative = unit_roundoff(output.dtype),
          .underflow = std::sqrt(parts) * underflow_of(output.dtype)};
}

// The loss of products near 0: each product is rounded, and CPUs that multiply bf16 directly treat
// operands below the smallest normal number as 0 (exec/cpu/kernels/gemm.h).
double product_underflow(const Program& program, const Producer& producer, double roundings,
                         DType state, const Magnitudes& magnitudes) {
  double growth = 1;
  double flushed = 0;
  const bool multiplies = producer.stmt->monoid != Monoid::Store;
  for (std::size_t i = 0; i < producer.stmt->operands.size(); ++i) {
    const DType type = buffer_of(program, producer.stmt->operands[i]).dtype;
    if (!is_floating(type)) continue;
    const double gain = gain_of(program, producer, i, magnitudes);
    growth = std::max(growth, gain);
    if (multiplies && type == DType::BF16) flushed += gain * smallest_normal(type);
  }
  return roundings * underflow_of(state) * growth + flushed;
}

ErrorBound bound_after(const Plan& plan, const Producer& producer, const Magnitudes& magnitudes) {
  const Stmt& stmt = *producer.stmt;
  ErrorBound bound;
  const DType dtype = buffer_of(plan.program, stmt.targets[producer.target]).dtype;
  if (!is_floating(dtype)) return bound;  // choices are compared, without rounding
  const DType state = state_type(plan, stmt);
  const double growth = stmt.monoid == Monoid::Lse ? scores_of(stmt, magnitudes).logsum : 1;
  bound.leaf = leaf_term(plan.program, producer, unit_roundoff(state), magnitudes);
  if (stmt.monoid != Monoid::Store) {
    bound.states = std::sqrt(count_folds(plan, producer)) * unit_roundoff(state) * growth;
  }
  if (is_leaf(stmt.leaf, Leaf::AddRmsNorm) && producer.target == 1) {
    const DType stored = buffer_of(plan.program, stmt.targets[0]).dtype;
    bound.underflow += underflow_of(stored) * gain_of(plan.program, producer, 0, magnitudes);
  }
  const WireTerms wire = wire_terms(plan, producer, state, magnitudes);
  const WireTerms parts = part_terms(plan, producer);
  bound.wire = wire.relative + parts.relative;
  const double roundings = (bound.leaf + bound.states) / unit_roundoff(state);
  bound.underflow += product_underflow(plan.program, producer, roundings, state, magnitudes) +
                     wire.underflow + parts.underflow;
  double squares = 0;  // errors of different operands are independent
  double underflows = 0;
  for (std::size_t i = 0; i < stmt.operands.size(); ++i) {
    const auto earlier = find_producer(plan.program, stmt.operands[i].buffer, producer.ordinal);
    if (!earlier) continue;
    const ErrorBound of_operand = bound_after(plan, *earlier, magnitudes);
    const double error = of_operand.expected() * growth_of(stmt, i, magnitudes);
    squares += error * error;
    const double arrives = of_operand.underflow * gain_of(plan.program, producer, i, magnitudes);
    underflows += arrives * arrives;
  }
  bound.operands = std::sqrt(squares);
  bound.underflow += std::sqrt(underflows);
  const LeafContract* const leaf = find_leaf_contract(stmt.leaf);
  const bool kept =
      leaf != nullptr && leaf->moves && buffer_of(plan.program, stmt.operands[0]).dtype == dtype;
  if (!kept) {
    bound.output = unit_roundoff(dtype);
    bound.underflow += underflow_of(dtype);
  }
  return bound;
}

}  // namespace

ErrorBound bound_of(const Plan& plan, const std::string& buffer, const Magnitudes& magnitudes) {
  return bound_after(plan, producer_of(plan.program, buffer), magnitudes);
}

}  // namespace harpe
