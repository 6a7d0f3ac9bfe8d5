#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "support/time_limit.h"
#include "verify/model.h"
#include "verify/terms.h"

namespace harpe::verifier {

// The sequential program over blocks, in free terms: what every plan must compute. Iterations that
// have no elements (D12) or that a mask hides do not run.
class Meaning {
 public:
  // Errors: V203 too many iterations; I505.
  [[nodiscard]] static Checked<Meaning> make(const Model& model, Terms& terms,
                                             const TimeLimit& limit);

  // The block's value after the program; kNoTerm if no statement sets it.
  [[nodiscard]] TermId value(int buffer, std::int64_t block) const {
    return values_[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(block)];
  }
  // The result of an iteration; kNoTerm if the iteration does not run.
  [[nodiscard]] TermId contribution(int statement, std::int64_t iteration) const {
    return contributions_[static_cast<std::size_t>(statement)][static_cast<std::size_t>(iteration)];
  }
  // The contributions to a target's block.
  [[nodiscard]] TermId state(int statement, int target, std::int64_t block) const {
    return states_[static_cast<std::size_t>(statement)][static_cast<std::size_t>(target)]
                  [static_cast<std::size_t>(block)];
  }

 private:
  Meaning(const Model& model, Terms& terms);
  [[nodiscard]] Checked<Ok> run(int statement, Terms& terms, const TimeLimit& limit);

  const Model& model_;
  std::vector<std::vector<TermId>> values_;               // per buffer, per block
  std::vector<std::vector<TermId>> contributions_;        // per statement, iteration
  std::vector<std::vector<std::vector<TermId>>> states_;  // per statement, target, block
};

[[nodiscard]] inline TermId input_term(Terms& terms, std::int32_t buffer, std::int32_t block,
                                       TermId likely = kNoTerm) {
  return terms.intern(TermKind::Input, {buffer, block}, likely);
}

[[nodiscard]] inline TermId value_term(Terms& terms, std::int32_t statement, std::int32_t target,
                                       std::int32_t block, TermId state, TermId likely = kNoTerm) {
  return terms.intern(TermKind::Value, {statement, target, block, state}, likely);
}

// The part of a whole term. Taking the same part of a part gives that part again; any other part of
// a part is a term that no read expects.
[[nodiscard]] inline TermId part_term(Terms& terms, TermId whole, const Cut& cut) {
  const bool again = terms.kind(whole) == TermKind::Part && terms.words(whole)[1] == cut.digit &&
                     terms.words(whole)[2] == cut.value;
  return again ? whole : terms.intern(TermKind::Part, {whole, cut.digit, cut.value});
}

struct MissingOperand {
  int buffer = -1;  // -1: none is missing
  std::int64_t block = 0;
};
// Appends to `words` the operands of the leaf at `point`: for every operand the terms of its
// non-empty blocks, as `lookup(buffer, block)` returns them. Stops at the first kNoTerm.
template <class Lookup>
[[nodiscard]] MissingOperand read_operands(const Model& model, const StatementModel& statement,
                                           std::span<const std::int32_t> point,
                                           std::vector<std::int32_t>& words, Lookup&& lookup) {
  for (const AccessModel& operand : statement.operands) {
    const std::int64_t base = product(operand.strides, point);
    const BufferModel& buffer = model.buffers[static_cast<std::size_t>(operand.buffer)];
    for (const std::int64_t offset : operand.offsets) {
      if (buffer.is_empty(base + offset)) continue;
      const TermId term = lookup(operand.buffer, base + offset);
      if (term == kNoTerm) return {.buffer = operand.buffer, .block = base + offset};
      words.push_back(term);
    }
  }
  return {};
}

// A box of all points of a digit list, for `next_point`.
[[nodiscard]] inline std::vector<Range> whole_box(const Radix& radix) {
  std::vector<Range> box;
  for (const std::int32_t extent : radix.extents) box.push_back({.lo = 0, .hi = extent});
  return box;
}

}  // namespace harpe::verifier
