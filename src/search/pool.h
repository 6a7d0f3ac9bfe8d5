#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/evaluator.h"
#include "search/outline.h"
#include "search/search.h"

namespace harpe {

// The schedules that a search has evaluated, each once.
class Pool {
 public:
  // With more ranks than this, outlines give the times, and only some plans are made.
  static constexpr std::int64_t kMostSimulatedRanks = 64;

  Pool(const Program& program, const Mesh& mesh, const Machine& machine,
       const SearchOptions& options, const TimeLimit& limit);

  // Sets the homes_of text that every schedule must have from here on to be eligible.
  void set_contract(std::string homes) { homes_ = std::move(homes); }

  // Evaluates a form unless it was seen before; true if it is new. A form without an outline must
  // be simulated; on many ranks it is skipped, see make_plan.
  bool add(const NormalForm& form, std::string label, bool named, Picoseconds bound,
           const std::optional<Outline>& outline);
  // On many ranks: makes the plan of a schedule, simulates it and, if it is faster than all proved
  // ones, proves it. That may refuse it, or show that it does not fit. Returns the number of its
  // tasks, or 0 without a plan.
  std::int64_t make_plan(Evaluated one);
  // Proves the fastest schedule whose proof was postponed. Once something is proved, and no time
  // limit may end the search early, proofs wait until all plans are made, and most are never
  // needed.
  void prove_fastest();
  // The same for a schedule without an outline, unless it was seen before.
  std::int64_t make_named(const NormalForm& form, std::string label);
  // Records a candidate that needs too much memory for further evaluation.
  void miss(Evaluated one);
  // Records `count` candidates that are refused for one reason.
  void refuse(const Diag& reason, std::int64_t count) { refused_[render_message(reason)] += count; }
  // Records a time that some schedule is known to reach.
  void reach(Picoseconds time) { best_ = std::min(best_, time); }

  [[nodiscard]] bool simulates() const { return simulates_; }
  [[nodiscard]] Picoseconds best_time() const { return best_; }
  [[nodiscard]] std::int64_t memory_limit() const { return limit_; }
  // Of the plans that were simulated.
  [[nodiscard]] std::int64_t mean_tasks() const {
    return tasks_ / std::max<std::int64_t>(simulated_, 1);
  }
  [[nodiscard]] const std::vector<Evaluated>& evaluated() const { return evaluated_; }
  [[nodiscard]] std::optional<std::int64_t> nearest_bytes() const;

  // Fills in everything except the counts of the walk. Errors: S701, S702, S704.
  [[nodiscard]] Checked<SearchResult> conclude(SearchResult result);

 private:
  // Why a schedule is listed but never chosen; "" if it is eligible. Counts violated constraints.
  [[nodiscard]] std::string find_exclusion(const NormalForm& form);
  // None where the schedule is refused or given up.
  std::optional<Plan> simulate(Evaluated& one);
  // True if `prove_fastest` proves it. Named schedules bound the others, so they are proved at
  // once.
  [[nodiscard]] bool puts_off(const Evaluated& one) const;
  // False if the proof refuses it.
  bool prove(Evaluated& one, const Plan& plan);
  // True if the refusal means that the time was over.
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
  std::string homes_;  // of the contract; "": any homes
  std::vector<Evaluated> evaluated_;
  struct Unproved {
    NormalForm form;
    Plan plan;
  };
  std::optional<Unproved> unproved_;  // the fastest schedule whose proof is postponed
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
