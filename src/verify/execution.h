#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"
#include "support/time_limit.h"
#include "verify/meaning.h"
#include "verify/model.h"
#include "verify/order.h"
#include "verify/resolved.h"
#include "verify/terms.h"
#include "verify/words.h"

namespace harpe::verifier {

// Collects, for one target of the current task, the terms that go to each block.
class Gather {
 public:
  void begin(std::int64_t blocks);
  void add(std::int64_t block, TermId term);
  // The block's terms in the order of adding; empty if there are none. Marks the block as taken.
  [[nodiscard]] const std::vector<TermId>& take(std::int64_t block);
  [[nodiscard]] bool is_taken(std::int64_t block) const;
  // A block with terms that was not taken, or -1.
  [[nodiscard]] std::int64_t left() const;

 private:
  struct Head {
    std::int32_t token = 0;
    std::int32_t node = -1;
  };
  struct Node {
    TermId term;
    std::int32_t next;
  };
  std::int32_t token_ = 0;
  std::vector<Head> heads_;  // per block
  std::vector<Node> nodes_;
  std::vector<std::int64_t> blocks_;  // blocks with terms, each once
  std::vector<bool> taken_;           // per entry of blocks_
  std::vector<std::int32_t> index_;   // per block: its entry of blocks_
  std::vector<TermId> list_;
};

// The operands of the current task: per buffer and block one term, or one term per part (Cut).
class Operands {
 public:
  explicit Operands(const Model& model);
  void begin() {
    ++token_;
    parts_.clear();
  }
  // False if an iteration could find a different term there. `cut.digit` is an index into the
  // space.
  [[nodiscard]] bool add(int buffer, std::int64_t block, TermId term, const Cut& cut);
  // The term that the iteration reads; kNoTerm if there is none.
  [[nodiscard]] TermId find(int buffer, std::int64_t block,
                            std::span<const std::int32_t> point) const;

 private:
  struct Head {
    std::int32_t token = 0;
    TermId whole = kNoTerm;  // for all iterations
    std::int32_t part = -1;
  };
  struct Part {
    Cut cut;
    TermId term;
    std::int32_t next;
  };
  std::int32_t token_ = 0;
  std::vector<std::vector<Head>> heads_;  // per buffer, per block
  std::vector<Part> parts_;
};

// What distinguishes terms. Values: the contributions of a state. Bits: also the order of adding
// and each rounding of a block on its way, so that equal terms mean equal bits.
enum class Detail : std::uint8_t { Values, Bits };

// Runs a plan once on free terms, in the order's sequence. One run suffices, because check_races
// showed that all orders agree (Theorem 5).
class Execution {
 public:
  // Requires: check_tasks, check_groups, check_races; for Bits also an execution of Values without
  // findings.
  //
  // For launches it runs the first execution. Kernels add to private sums, which begin empty, and
  // skip what a mask hides.
  Execution(const Plan& plan, const Words& words, const Resolved& resolved, const Meaning& meaning,
            Terms& terms, const Scope& scope, Detail detail = Detail::Values);

  // Errors: V501-V514; I505. For Bits only I505.
  [[nodiscard]] Checked<Ok> run(const Order& order, const TimeLimit& limit);

  // The term in a cell of a slot after the run; kNoTerm if there is none.
  [[nodiscard]] TermId held(std::int32_t alloc, std::int64_t local, std::int32_t block);

 private:
  [[nodiscard]] Checked<Ok> run_task(std::size_t task);
  [[nodiscard]] Checked<Ok> run_group(std::span<const std::int32_t> members);
  [[nodiscard]] Checked<Ok> compute(std::size_t task);
  [[nodiscard]] Checked<Ok> load_operands(std::size_t task);
  [[nodiscard]] Checked<TermId> operand(std::size_t task, const ResolvedRef& ref, const Cell& cell);
  [[nodiscard]] Checked<Ok> run_iterations(std::size_t task);
  [[nodiscard]] Checked<Ok> initialise(std::size_t task);
  [[nodiscard]] Checked<Ok> gather_sources(std::size_t task);
  [[nodiscard]] Checked<Ok> check_partners(std::size_t task, const ResolvedRef& states,
                                           std::span<const ResolvedRef> weights);
  [[nodiscard]] Checked<Ok> check_added(std::size_t task);
  [[nodiscard]] Checked<Ok> write_gathered(std::size_t task);
  [[nodiscard]] Checked<TermId> result(std::size_t task, const ResolvedRef& ref, const Cell& cell,
                                       int target);
  [[nodiscard]] TermId add_up(TaskKind kind, std::span<const TermId> terms, TermId likely);
  [[nodiscard]] TermId rounded(TermId term, DType from, DType to);
  [[nodiscard]] bool is_empty(TermId state) const {
    return state == kNoTerm || state == terms_.empty_state();
  }
  [[nodiscard]] Checked<Ok> read_parts(std::size_t task, std::vector<TermId>& parts);
  [[nodiscard]] Checked<Ok> write_parts(std::size_t task, std::span<const TermId> parts);
  void begin_gather(const StatementModel& statement);

  [[nodiscard]] Checked<TermId> read(std::size_t task, const ResolvedRef& ref, const Cell& cell);
  [[nodiscard]] TermId peek(const ResolvedRef& ref, const Cell& cell);
  void write(const ResolvedRef& ref, const Cell& cell, TermId term);
  [[nodiscard]] const StatementModel& statement_of(std::size_t task) const;
  [[nodiscard]] static int target_of(const StatementModel& statement, std::int32_t buffer);
  [[nodiscard]] Diag block_finding(DiagCode code, std::size_t task, const ResolvedRef& ref,
                                   std::int64_t block) const;

  const Plan& plan_;
  const Model& model_;
  const Resolved& resolved_;
  const Meaning& meaning_;
  Terms& terms_;
  const Scope& scope_;
  Detail detail_;
  const Words& words_;
  std::vector<TermId> cells_;
  std::vector<std::int32_t> content_;  // per slot: the content of its cells
  std::vector<std::int32_t> last_;     // per slot: a block of that content
  std::vector<bool> is_input_;         // per slot: the home of an input (D11)

  // Of the current task.
  Operands operands_;
  std::vector<Gather> gathers_;  // per target
  std::vector<TermId> parts_;
  std::vector<std::int32_t> leaf_;
  std::vector<std::int32_t> point_;
  std::vector<TermId> union_;
};

}  // namespace harpe::verifier
