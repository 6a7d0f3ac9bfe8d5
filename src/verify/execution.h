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

// For one target of the task at hand: which terms go to which block.
class Gather {
 public:
  void begin(std::int64_t blocks);
  void add(std::int64_t block, TermId term);
  // The block's terms as they were added; empty when there are none. Taken blocks are not `left`.
  [[nodiscard]] const std::vector<TermId>& take(std::int64_t block);
  [[nodiscard]] bool is_taken(std::int64_t block) const;
  // A block that was added and never taken, or -1.
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
  std::vector<std::int64_t> blocks_;  // added, each once
  std::vector<bool> taken_;           // per entry of blocks_
  std::vector<std::int32_t> index_;   // per block: its entry of blocks_
  std::vector<TermId> list_;
};

// What the task at hand reads: per buffer and block a term, or one for each part of the iterations.
class Operands {
 public:
  explicit Operands(const Model& model);
  void begin() {
    ++token_;
    parts_.clear();
  }
  // False if an iteration could find another term there. `cut.digit` is a place in the space.
  [[nodiscard]] bool add(int buffer, std::int64_t block, TermId term, const Cut& cut);
  // What the iteration finds; kNoTerm for nothing.
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

// What terms tell apart. Values: which contributions a state has. Bits: also in which order they
// were added, and where a block was rounded on its way: equal terms are then equal bits.
enum class Detail : std::uint8_t { Values, Bits };

// Runs a plan once on free terms, in the order's sequence: legal because check_races showed that
// all orders agree (Theorem 5).
class Execution {
 public:
  // Requires: check_tasks, check_groups, check_races.
  // Of Bits: and that an execution of Values found nothing.
  //
  // Of launches: the first execution. Kernels add to sums of their own, which begin empty, and pass
  // over what a mask hides.
  Execution(const Plan& plan, const Words& words, const Resolved& resolved, const Meaning& meaning,
            Terms& terms, const Scope& scope, Detail detail = Detail::Values);

  // Errors: V501-V514; I505. Of Bits: I505.
  [[nodiscard]] Checked<Ok> run(const Order& order, const TimeLimit& limit);

  // What a cell of a slot holds after the run; kNoTerm for nothing.
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
  std::vector<std::int32_t> content_;  // per slot: the content its cells are of
  std::vector<std::int32_t> last_;     // per slot: a block of that content
  std::vector<bool> is_input_;         // per slot: the home of an input (D11)

  // Of the task at hand.
  Operands operands_;
  std::vector<Gather> gathers_;  // per target
  std::vector<TermId> parts_;
  std::vector<std::int32_t> leaf_;
  std::vector<std::int32_t> point_;
  std::vector<TermId> union_;
};

}  // namespace harpe::verifier
