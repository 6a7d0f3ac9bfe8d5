#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/evaluator.h"
#include "search/outline.h"
#include "search/search.h"

namespace harpe {

// What a search has evaluated so far, each schedule once.
class Pool {
 public:
  // Ranks beyond which not every plan is made that is added: outlines say the time first.
  static constexpr std::int64_t kMostSimulatedRanks = 64;

  Pool(const Program& program, const Mesh& mesh, const Machine& machine,
       const SearchOptions& options, const TimeLimit& limit);

  // What homes_of says of all schedules that may be chosen from here on.
  void set_contract(std::string homes) { homes_ = std::move(homes); }

  // Evaluates a form unless it was seen; true where it was new. Without an outline it must be
  // simulated, or is passed over: on many ranks, see make_plan.
  bool add(const NormalForm& form, std::string label, bool named, Picoseconds bound,
           const std::optional<Outline>& outline);
  // On many ranks. Makes the plan of a schedule, simulates it and, where it is faster than all that
  // was proved, proves it; it may turn out not to be one, or not to fit. Returns its tasks, 0 where
  // there is none.
  std::int64_t make_plan(Evaluated one);
  // Proves the fastest of them, where that was put off: once something is proved, and no time limit
  // may end the search before, others wait until all are made, and most need no proof.
  void prove_fastest();
  // The same of a schedule without an outline, unless it was seen.
  std::int64_t make_named(const NormalForm& form, std::string label);
  // A candidate that needs too much memory to be looked at further.
  void miss(Evaluated one);
  // So many candidates that are not looked at further, for one reason.
  void refuse(const Diag& reason, std::int64_t count) { refused_[render_message(reason)] += count; }
  // A time that some schedule is known to reach.
  void reach(Picoseconds time) { best_ = std::min(best_, time); }

  [[nodiscard]] bool simulates() const { return simulates_; }
  [[nodiscard]] Picoseconds best_time() const { return best_; }
  [[nodiscard]] std::int64_t memory_limit() const { return limit_; }
  [[nodiscard]] std::int64_t tasks() const { return tasks_; }  // of the largest plan made
  [[nodiscard]] const std::vector<Evaluated>& evaluated() const { return evaluated_; }
  [[nodiscard]] std::optional<std::int64_t> nearest_bytes() const;

  // Fills in everything but the counts of the walk. Errors: S701, S702, S704.
  [[nodiscard]] Checked<SearchResult> conclude(SearchResult result);

 private:
  // Why a schedule is shown and never chosen; "": it may be. Counts it where a constraint is why.
  [[nodiscard]] std::string find_exclusion(const NormalForm& form);
  // None where it is refused or given up.
  std::optional<Plan> simulate(Evaluated& one);
  // Whether it is proved in `prove_fastest`. Times of named schedules bound others: proved at once.
  [[nodiscard]] bool puts_off(const Evaluated& one) const;
  // False where it is refused.
  bool prove(Evaluated& one, const Plan& plan);
  // True where it says that the time was over.
  bool note(const Evaluated& one, const Diag& refusal);
  void keep(Evaluated one);
  [[nodiscard]] Diag refuse_all(const SearchResult& result) const;

  const Program& program_;
  const Mesh& mesh_;
  const SearchOptions& options_;
  TimeLimit time_;
  SimulationEvaluator evaluator_;
  bool simulates_;
  std::int64_t limit_;
  std::string homes_;  // of the contract; "": any
  std::vector<Evaluated> evaluated_;
  struct Unproved {
    NormalForm form;
    Plan plan;
  };
  std::optional<Unproved> unproved_;  // the fastest whose proof is put off
  std::vector<Evaluated> excluded_;
  std::vector<Evaluated> too_large_;
  std::set<std::string> seen_;
  std::map<std::string, std::int64_t> refused_;
  std::optional<GivenUp> given_up_;
  Picoseconds best_ = Picoseconds::longest();
  std::int64_t tasks_ = 0;
  std::int64_t simulated_ = 0;
};

[[nodiscard]] bool is_better(const Evaluated& a, const Evaluated& b);

}  // namespace harpe
