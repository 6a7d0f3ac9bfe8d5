#include "verify/execution.h"

#include <algorithm>

namespace harpe::verifier {

void Gather::begin(std::int64_t blocks) {
  heads_.resize(std::max(heads_.size(), static_cast<std::size_t>(blocks)));
  index_.resize(heads_.size());
  ++token_;
  nodes_.clear();
  blocks_.clear();
  taken_.clear();
}

void Gather::add(std::int64_t block, TermId term) {
  Head& head = heads_[static_cast<std::size_t>(block)];
  if (head.token != token_) {
    head = {.token = token_, .node = -1};
    index_[static_cast<std::size_t>(block)] = static_cast<std::int32_t>(blocks_.size());
    blocks_.push_back(block);
    taken_.push_back(false);
  }
  nodes_.push_back({.term = term, .next = head.node});
  head.node = static_cast<std::int32_t>(nodes_.size()) - 1;
}

const std::vector<TermId>& Gather::take(std::int64_t block) {
  list_.clear();
  const auto at = static_cast<std::size_t>(block);
  if (heads_[at].token != token_) return list_;
  for (std::int32_t node = heads_[at].node; node >= 0;
       node = nodes_[static_cast<std::size_t>(node)].next) {
    list_.push_back(nodes_[static_cast<std::size_t>(node)].term);
  }
  taken_[static_cast<std::size_t>(index_[at])] = true;
  std::ranges::reverse(list_);
  return list_;
}

bool Gather::is_taken(std::int64_t block) const {
  const auto at = static_cast<std::size_t>(block);
  return heads_[at].token == token_ && taken_[static_cast<std::size_t>(index_[at])];
}

std::int64_t Gather::left() const {
  const auto found = std::ranges::find(taken_, false);
  return found == taken_.end() ? -1 : blocks_[static_cast<std::size_t>(found - taken_.begin())];
}

Operands::Operands(const Model& model) {
  for (const BufferModel& buffer : model.buffers) {
    heads_.emplace_back(static_cast<std::size_t>(buffer.radix.blocks));
  }
}

bool Operands::add(int buffer, std::int64_t block, TermId term, const Cut& cut) {
  Head& head = heads_[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(block)];
  if (head.token != token_) head = {.token = token_, .whole = kNoTerm, .part = -1};
  if (head.whole != kNoTerm && head.whole != term) return false;
  for (std::int32_t at = head.part; at >= 0; at = parts_[static_cast<std::size_t>(at)].next) {
    const Part& part = parts_[static_cast<std::size_t>(at)];
    const bool apart = part.cut.digit == cut.digit && part.cut.value != cut.value;
    if (!apart && part.term != term) return false;
  }
  if (cut.is_whole()) {
    head.whole = term;
  } else {
    parts_.push_back({.cut = cut, .term = term, .next = head.part});
    head.part = static_cast<std::int32_t>(parts_.size()) - 1;
  }
  return true;
}

TermId Operands::find(int buffer, std::int64_t block, std::span<const std::int32_t> point) const {
  const Head& head = heads_[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(block)];
  if (head.token != token_) return kNoTerm;
  if (head.whole != kNoTerm) return head.whole;
  for (std::int32_t at = head.part; at >= 0; at = parts_[static_cast<std::size_t>(at)].next) {
    const Part& part = parts_[static_cast<std::size_t>(at)];
    if (point[static_cast<std::size_t>(part.cut.digit)] == part.cut.value) return part.term;
  }
  return kNoTerm;
}

Execution::Execution(const Plan& plan, const Words& words, const Resolved& resolved,
                     const Meaning& meaning, Terms& terms, const Scope& scope, Detail detail)
    : plan_(plan),
      model_(words.model()),
      resolved_(resolved),
      meaning_(meaning),
      terms_(terms),
      scope_(scope),
      detail_(detail),
      words_(words),
      cells_(static_cast<std::size_t>(resolved.cell_count), kNoTerm),
      content_(plan.allocs.size(), -1),
      last_(plan.allocs.size(), -1),
      operands_(words.model()) {
  for (std::size_t id = 0; id < plan.allocs.size(); ++id) {
    const Role role = model_
                          .buffers[static_cast<std::size_t>(
                              resolved.footprint(static_cast<std::int64_t>(id)).buffer)]
                          .role;
    is_input_.push_back(plan.allocs[id].level == Level::Home && role == Role::In);
  }
}

const StatementModel& Execution::statement_of(std::size_t task) const {
  return model_.statements[static_cast<std::size_t>(resolved_.statements[task])];
}

int Execution::target_of(const StatementModel& statement, std::int32_t buffer) {
  const auto found = std::ranges::find(statement.targets, buffer, &AccessModel::buffer);
  return static_cast<int>(found - statement.targets.begin());
}

Diag Execution::block_finding(DiagCode code, std::size_t task, const ResolvedRef& ref,
                              std::int64_t block) const {
  return make_diag(code, {{"task", words_.task(static_cast<std::int64_t>(task))},
                          {"block", words_.block(ref.buffer, block)},
                          {"alloc", words_.alloc(ref.alloc)}});
}

TermId Execution::held(std::int32_t alloc, std::int64_t local, std::int32_t block) {
  const auto slot = static_cast<std::size_t>(alloc);
  const TermId term = cells_[static_cast<std::size_t>(resolved_.allocs[slot].first_cell + local)];
  if (term != kNoTerm || !is_input_[slot]) return term;
  const std::int32_t buffer = resolved_.footprint(alloc).buffer;
  return input_term(terms_, buffer, block, meaning_.value(buffer, block));
}

TermId Execution::peek(const ResolvedRef& ref, const Cell& cell) {
  const auto slot = static_cast<std::size_t>(ref.alloc);
  if (!is_input_[slot] && content_[slot] != ref.content) return kNoTerm;
  return held(ref.alloc, cell.local, cell.block);
}

Checked<TermId> Execution::read(std::size_t task, const ResolvedRef& ref, const Cell& cell) {
  const TermId term = peek(ref, cell);
  if (term != kNoTerm) return term;
  const auto slot = static_cast<std::size_t>(ref.alloc);
  const bool other = content_[slot] >= 0 && content_[slot] != ref.content;
  Diag finding = block_finding(DiagCode::V501, task, ref, cell.block);
  finding.args.emplace_back(
      "why", other ? "which holds " + words_.block(ref.buffer, last_[slot]) + " by then"
                   : "where no task has stored it");
  return finding;
}

void Execution::write(const ResolvedRef& ref, const Cell& cell, TermId term) {
  const auto slot = static_cast<std::size_t>(ref.alloc);
  if (content_[slot] != ref.content) {
    // A new content invalidates the whole slot, wherever its blocks lay.
    const auto first = static_cast<std::size_t>(resolved_.allocs[slot].first_cell);
    const auto count = static_cast<std::size_t>(resolved_.footprint(ref.alloc).cells);
    std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(first), count, kNoTerm);
    content_[slot] = ref.content;
    last_[slot] = cell.block;
  }
  cells_[resolved_.cell_index(ref, cell)] = term;
}

Checked<Ok> Execution::run(const Order& order, const TimeLimit& limit) {
  for (const std::int32_t unit : order.sequence) {
    HP_REQUIRE_OK(limit.check(kProof));
    const std::span<const std::int32_t> members = order.members(unit);
    if (!members.empty() && static_cast<std::size_t>(members.front()) >= scope_.tasks) continue;
    if (order.is_group(unit)) {
      HP_REQUIRE_OK(run_group(members));
    } else if (!members.empty()) {
      HP_REQUIRE_OK(run_task(static_cast<std::size_t>(members.front())));
    }
  }
  return Ok{};
}

Checked<Ok> Execution::run_task(std::size_t task) {
  switch (plan_.tasks[task].kind) {
    case TaskKind::Entry:
    case TaskKind::Exit:
    case TaskKind::Collective:  // run_group
      return Ok{};
    case TaskKind::Init:
      return initialise(task);
    case TaskKind::Compute:
      return compute(task);
    case TaskKind::Copy:
    case TaskKind::Pack:
    case TaskKind::Unpack:
      parts_.clear();
      HP_REQUIRE_OK(read_parts(task, parts_));
      return write_parts(task, parts_);
    case TaskKind::Fold:
    case TaskKind::Finalise:
      HP_REQUIRE_OK(gather_sources(task));
      return write_gathered(task);
  }
  return Ok{};
}

// All members read before any member writes, so no member reads another one's new values.
Checked<Ok> Execution::run_group(std::span<const std::int32_t> members) {
  std::vector<std::vector<TermId>> parts(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    HP_REQUIRE_OK(read_parts(static_cast<std::size_t>(members[i]), parts[i]));
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto task = static_cast<std::size_t>(members[i]);
    if (resolved_.statements[task] < 0) {
      HP_REQUIRE_OK(write_parts(task, parts[i]));
      continue;
    }
    const StatementModel& statement = statement_of(task);
    begin_gather(statement);
    std::size_t next = 0;
    for (const ResolvedRef& ref : resolved_.reads(task)) {
      for (const Cell& cell : resolved_.cells(ref)) {
        const Alloc& from = plan_.allocs[static_cast<std::size_t>(ref.alloc)];
        const bool own = from.rank == words_.rank_of(members[i]);
        const DType wire = own ? from.dtype : plan_.tasks[task].wire.value_or(from.dtype);
        const TermId term = rounded(parts[i][next++], from.dtype, wire);
        if (terms_.kind(term) != TermKind::State) {
          return block_finding(DiagCode::V504, task, ref, cell.block);
        }
        gathers_[static_cast<std::size_t>(target_of(statement, ref.buffer))].add(cell.block, term);
      }
    }
    HP_REQUIRE_OK(write_gathered(task));
  }
  return Ok{};
}

Checked<Ok> Execution::read_parts(std::size_t task, std::vector<TermId>& parts) {
  for (const ResolvedRef& ref : resolved_.reads(task)) {
    for (const Cell& cell : resolved_.cells(ref)) {
      HP_TRY(parts.emplace_back(), read(task, ref, cell));
    }
  }
  return Ok{};
}

// Writes the parts in the order of the reads; the writes have the same blocks pair by pair.
Checked<Ok> Execution::write_parts(std::size_t task, std::span<const TermId> parts) {
  std::size_t next = 0;
  const std::span<const ResolvedRef> writes = resolved_.writes(task);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const ResolvedRef& ref = writes[i];
    const DType from = plan_.allocs[plan_.tasks[task].reads[i].alloc.index()].dtype;
    const DType to = plan_.allocs[static_cast<std::size_t>(ref.alloc)].dtype;
    const bool home = plan_.allocs[static_cast<std::size_t>(ref.alloc)].level == Level::Home;
    const bool partial = !model_.buffers[static_cast<std::size_t>(ref.buffer)].partial.empty();
    for (const Cell& cell : resolved_.cells(ref)) {
      TermId term = rounded(parts[next++], from, to);
      if (home && !partial && terms_.kind(term) == TermKind::State) {
        return block_finding(DiagCode::V511, task, ref, cell.block);
      }
      if (!ref.cut.is_whole()) term = part_term(terms_, term, ref.cut);
      write(ref, cell, term);
    }
  }
  return Ok{};
}

Checked<Ok> Execution::initialise(std::size_t task) {
  const StatementModel& statement = statement_of(task);
  const std::int32_t id = resolved_.statements[task];
  for (const ResolvedRef& ref : resolved_.writes(task)) {
    const int target = target_of(statement, ref.buffer);
    const bool partial = !model_.buffers[static_cast<std::size_t>(ref.buffer)].partial.empty();
    for (const Cell& cell : resolved_.cells(ref)) {
      const TermId wanted = meaning_.state(id, target, cell.block);
      if (wanted != terms_.empty_state() && !partial) {
        return make_diag(
            DiagCode::V508,
            {{"task", words_.task(static_cast<std::int64_t>(task))},
             {"block", words_.block(ref.buffer, cell.block)},
             {"contributions",
              count_of(static_cast<std::int64_t>(terms_.words(wanted).size()), "contribution")}});
      }
      write(ref, cell,
            value_term(terms_, id, target, cell.block, terms_.empty_state(),
                       meaning_.value(ref.buffer, cell.block)));
    }
  }
  return Ok{};
}

}  // namespace harpe::verifier
