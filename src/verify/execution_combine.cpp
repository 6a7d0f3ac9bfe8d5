#include <algorithm>

#include "verify/execution.h"

namespace harpe::verifier {

void Execution::begin_gather(const StatementModel& statement) {
  gathers_.resize(std::max(gathers_.size(), statement.targets.size()));
  for (std::size_t target = 0; target < statement.targets.size(); ++target) {
    const auto buffer = static_cast<std::size_t>(statement.targets[target].buffer);
    gathers_[target].begin(model_.buffers[buffer].radix.blocks);
  }
}

Checked<Ok> Execution::compute(std::size_t task) {
  HP_REQUIRE_OK(load_operands(task));
  begin_gather(statement_of(task));
  HP_REQUIRE_OK(run_iterations(task));
  HP_REQUIRE_OK(check_added(task));
  return write_gathered(task);
}

Checked<Ok> Execution::load_operands(std::size_t task) {
  const StatementModel& statement = statement_of(task);
  const Radix& space = model_.nests[static_cast<std::size_t>(statement.nest)].space;
  operands_.begin();
  for (const ResolvedRef& ref : resolved_.reads(task)) {
    Cut cut = ref.cut;
    if (!cut.is_whole()) {
      cut.digit = static_cast<std::int32_t>(std::ranges::find(space.digits, cut.digit) -
                                            space.digits.begin());
    }
    for (const Cell& cell : resolved_.cells(ref)) {
      HP_TRY(const TermId term, operand(task, ref, cell));
      const bool same = operands_.add(ref.buffer, cell.block, term, cut);
      if (!same && detail_ == Detail::Values) {
        return block_finding(DiagCode::V512, task, ref, cell.block);
      }
    }
  }
  return Ok{};
}

// A part is an operand only for the iterations of its digit value.
Checked<TermId> Execution::operand(std::size_t task, const ResolvedRef& ref, const Cell& cell) {
  HP_TRY(const TermId term, read(task, ref, cell));
  if (terms_.kind(term) == TermKind::State) {
    return block_finding(DiagCode::V503, task, ref, cell.block);
  }
  TermId whole = term;
  Cut other;  // the cut that the block already has
  while (terms_.kind(whole) == TermKind::Part) {
    const std::span<const std::int32_t> part = terms_.words(whole);
    const Cut cut{.digit = part[1], .value = part[2]};
    if (cut != ref.cut) other = cut;
    whole = part[0];
  }
  if (other.is_whole()) return whole;
  Diag finding = block_finding(DiagCode::V514, task, ref, cell.block);
  finding.args.emplace_back("held", words_.cut(other));
  finding.args.emplace_back("wanted", words_.cut(ref.cut));
  return finding;
}

Checked<Ok> Execution::run_iterations(std::size_t task) {
  const StatementModel& statement = statement_of(task);
  const NestModel& nest = model_.nests[static_cast<std::size_t>(statement.nest)];
  const auto lookup = [&](int buffer, std::int64_t block) {
    return operands_.find(buffer, block, point_);
  };
  for (const Box& box : plan_.tasks[task].iter) {
    point_.clear();
    for (const Range& range : box) point_.push_back(range.lo);
    do {
      const std::int64_t iteration = product(nest.space.strides, point_);
      const TermId wanted = meaning_.contribution(resolved_.statements[task], iteration);
      if (wanted == kNoTerm) {  // the iteration is empty or masked
        if (scope_.is_of_launches || model_.is_empty(nest, point_)) continue;
        return make_diag(DiagCode::V506,
                         {{"task", words_.task(static_cast<std::int64_t>(task))},
                          {"iteration", words_.iteration(statement.nest, iteration)}});
      }
      leaf_ = {resolved_.statements[task], static_cast<std::int32_t>(iteration)};
      const MissingOperand missing = read_operands(model_, statement, point_, leaf_, lookup);
      if (missing.buffer >= 0) {
        return make_diag(DiagCode::V502,
                         {{"task", words_.task(static_cast<std::int64_t>(task))},
                          {"iteration", words_.iteration(statement.nest, iteration)},
                          {"block", words_.block(missing.buffer, missing.block)}});
      }
      const TermId term = terms_.intern(TermKind::Contribution, leaf_, wanted);
      for (std::size_t t = 0; t < statement.targets.size(); ++t) {
        const AccessModel& target = statement.targets[t];
        const BufferModel& buffer = model_.buffers[static_cast<std::size_t>(target.buffer)];
        const std::int64_t base = product(target.strides, point_);
        for (const std::int64_t offset : target.offsets) {
          if (!buffer.is_empty(base + offset)) gathers_[t].add(base + offset, term);
        }
      }
    } while (next_point(box, point_));
  }
  return Ok{};
}

// Gathers source by source; under a tied state each o combines only with the l of the same state.
Checked<Ok> Execution::gather_sources(std::size_t task) {
  const StatementModel& statement = statement_of(task);
  const bool stored = statement.monoid == Monoid::Store;
  begin_gather(statement);
  const std::span<const ResolvedRef> reads = resolved_.reads(task);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    Gather& gather = gathers_[static_cast<std::size_t>(target_of(statement, reads[i].buffer))];
    for (const Cell& cell : resolved_.cells(reads[i])) {
      HP_TRY(const TermId term, read(task, reads[i], cell));
      if ((terms_.kind(term) == TermKind::State) == stored) {
        return block_finding(stored ? DiagCode::V503 : DiagCode::V504, task, reads[i], cell.block);
      }
      gather.add(cell.block, term);
    }
    if (statement.tied && i % 2 == 0 && detail_ == Detail::Values) {
      HP_REQUIRE_OK(check_partners(task, reads[i], reads.subspan(i + 1, 1)));
    }
  }
  return check_added(task);
}

// Checks that the o and the l that are added to hold the same contributions so far.
Checked<Ok> Execution::check_added(std::size_t task) {
  const StatementModel& statement = statement_of(task);
  if (!statement.tied || detail_ == Detail::Bits) return Ok{};
  std::vector<ResolvedRef> weights;
  for (const ResolvedRef& ref : resolved_.writes(task)) {
    const bool weight = target_of(statement, ref.buffer) == 1;
    if (weight && ref.mode == WriteMode::Add) weights.push_back(ref);
  }
  for (const ResolvedRef& ref : resolved_.writes(task)) {
    if (ref.mode != WriteMode::Add || target_of(statement, ref.buffer) != 0) continue;
    HP_REQUIRE_OK(check_partners(task, ref, weights));
  }
  return Ok{};
}

Checked<Ok> Execution::check_partners(std::size_t task, const ResolvedRef& states,
                                      std::span<const ResolvedRef> weights) {
  const StatementModel& statement = statement_of(task);
  operands_.begin();
  for (const ResolvedRef& ref : weights) {
    for (const Cell& cell : resolved_.cells(ref)) {
      (void)operands_.add(ref.buffer, cell.block, peek(ref, cell), {});
    }
  }
  const auto size = [&](TermId state) {
    const auto count = state == kNoTerm ? 0 : static_cast<std::int64_t>(terms_.words(state).size());
    return count_of(count, "contribution");
  };
  for (const Cell& cell : resolved_.cells(states)) {
    const std::int32_t partner = statement.partner[static_cast<std::size_t>(cell.block)];
    const TermId term = operands_.find(statement.targets[1].buffer, partner, {});
    const TermId state = peek(states, cell);
    const bool is_private = static_cast<std::size_t>(states.alloc) >= scope_.private_from;
    if (term == state && (state != kNoTerm || is_private)) continue;
    return make_diag(DiagCode::V507,
                     {{"task", words_.task(static_cast<std::int64_t>(task))},
                      {"state", words_.block(states.buffer, cell.block)},
                      {"alloc", words_.alloc(states.alloc)},
                      {"state_size", size(state)},
                      {"weight", words_.block(statement.targets[1].buffer, partner)},
                      {"weight_size", size(term)}});
  }
  return Ok{};
}

Checked<Ok> Execution::write_gathered(std::size_t task) {
  const StatementModel& statement = statement_of(task);
  for (const ResolvedRef& ref : resolved_.writes(task)) {
    const int target = target_of(statement, ref.buffer);
    for (const Cell& cell : resolved_.cells(ref)) {
      HP_TRY(const TermId term, result(task, ref, cell, target));
      write(ref, cell, term);
    }
  }
  for (std::size_t target = 0; target < statement.targets.size(); ++target) {
    const std::int64_t block = gathers_[target].left();
    if (block < 0) continue;
    return make_diag(DiagCode::V510,
                     {{"task", words_.task(static_cast<std::int64_t>(task))},
                      {"block", words_.block(statement.targets[target].buffer, block)}});
  }
  return Ok{};
}

// The state of these contributions or states. Bits: in the given order.
TermId Execution::add_up(TaskKind kind, std::span<const TermId> terms, TermId likely) {
  if (detail_ == Detail::Bits) {
    const bool moved = kind != TaskKind::Compute && terms.size() == 1;
    return moved ? terms.front() : terms_.intern(TermKind::State, terms);
  }
  union_.clear();
  for (const TermId term : terms) {
    if (kind == TaskKind::Compute) {
      union_.push_back(term);
    } else {
      const std::span<const std::int32_t> contributions = terms_.words(term);
      union_.insert(union_.end(), contributions.begin(), contributions.end());
    }
  }
  return terms_.state(union_, likely);
}

// A block rounded to a narrower type, or to another of equal width. Rounding a part gives a part of
// the rounded block, since a read of the whole block would round the same way.
TermId Execution::rounded(TermId term, DType from, DType to) {
  const bool exact = from == to || size_in_bytes(from) < size_in_bytes(to);
  if (detail_ == Detail::Values || exact) return term;
  const TermKind kind = terms_.kind(term);
  if (kind == TermKind::Part) {
    const std::span<const std::int32_t> part = terms_.words(term);
    const Cut cut{.digit = part[1], .value = part[2]};
    return part_term(terms_, rounded(part[0], from, to), cut);
  }
  const std::int32_t type = -1 - static_cast<std::int32_t>(to);  // no term has this id
  const std::span<const std::int32_t> words = terms_.words(term);
  // already rounded to it
  if (kind != TermKind::Input && words.size() == 2 && words[1] == type) return term;
  return terms_.intern(kind == TermKind::State ? TermKind::State : TermKind::Value, {term, type});
}

// The value of a cell after a write: gathered contributions or states, added to what the cell holds
// if the mode is Add.
Checked<TermId> Execution::result(std::size_t task, const ResolvedRef& ref, const Cell& cell,
                                  int target) {
  const StatementModel& statement = statement_of(task);
  if (gathers_[static_cast<std::size_t>(target)].is_taken(cell.block)) {
    return make_diag(DiagCode::V213, {{"task", words_.task(static_cast<std::int64_t>(task))},
                                      {"verb", "writes"},
                                      {"block", words_.block(ref.buffer, cell.block)},
                                      {"alloc", words_.alloc(ref.alloc) + " and elsewhere"}});
  }
  const std::vector<TermId>& terms = gathers_[static_cast<std::size_t>(target)].take(cell.block);
  const bool is_private = static_cast<std::size_t>(ref.alloc) >= scope_.private_from;
  const TermId current = ref.mode == WriteMode::Add ? peek(ref, cell) : kNoTerm;
  if (terms.empty()) {
    if (is_private) return current == kNoTerm ? terms_.empty_state() : current;
    return block_finding(DiagCode::V509, task, ref, cell.block);
  }
  const TaskKind kind = plan_.tasks[task].kind;
  if (statement.monoid == Monoid::Store && kind != TaskKind::Compute) {
    if (terms.size() == 1) return terms.front();
    return block_finding(DiagCode::V513, task, ref, cell.block);
  }
  const std::int32_t id = resolved_.statements[task];
  const TermId likely = meaning_.state(id, target, cell.block);
  TermId state = add_up(kind, terms, likely);
  const bool is_addend = is_private && kind == TaskKind::Fold && ref.mode == WriteMode::Add;
  if (is_addend && detail_ == Detail::Bits) {
    state = terms_.intern(TermKind::State, {state, kAddend});
  }
  if (ref.mode == WriteMode::Add && !(is_private && is_empty(current))) {
    if (current == kNoTerm || terms_.kind(current) != TermKind::State) {
      return block_finding(DiagCode::V505, task, ref, cell.block);
    }
    state = detail_ == Detail::Bits ? terms_.intern(TermKind::State, {current, state})
                                    : terms_.combine(current, state, likely);
  }
  const auto slot = static_cast<std::size_t>(ref.alloc);
  const bool is_narrowed = slot < scope_.narrowed.size() && scope_.narrowed[slot];
  if (ref.mode != WriteMode::Set && !is_narrowed) return state;
  state = rounded(state, DType::F64, plan_.allocs[slot].dtype);
  if (ref.mode != WriteMode::Set) return state;
  return value_term(terms_, id, target, cell.block, state, meaning_.value(ref.buffer, cell.block));
}

}  // namespace harpe::verifier
