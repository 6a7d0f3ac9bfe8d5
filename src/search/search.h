#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "search/constraints.h"
#include "support/diag.h"
#include "support/time_limit.h"
#include "support/units.h"

namespace harpe {

// Where inputs and outputs live, as agreed with the caller (commir.md Q1, D13).
enum class Contract : std::uint8_t {
  Standard,  // the operator's own homes (docs/schedules.md), any layout
  Free,      // every placement is searched; the best one per placement is kept
};

// What a schedule may do to sums, from strict to permissive (commir.md 9). A plan fixes its fold
// order, so all classes give the same bits from run to run.
enum class NumericsClass : std::uint8_t {
  Exact,         // every sum is folded in the program's order, with no partial sums
  Reassociated,  // in any tree, with partial states in full precision
  Rounded,       // partial sums may be sent in the output's type
};
// The class of a schedule.
[[nodiscard]] NumericsClass numerics_of(const Program& program, const NormalForm& form);
[[nodiscard]] std::string_view print(NumericsClass numerics);  // "exact", …

// A schedule to begin with, for example from a plan cache.
struct Seed {
  std::string label;
  NormalForm form;
  friend bool operator==(const Seed&, const Seed&) = default;
};

struct SearchOptions {
  std::string family;  // the operator whose named schedules are the baselines; "": none
  Contract contract = Contract::Standard;
  Constraints constraints;  // under either contract
  NumericsClass numerics = NumericsClass::Rounded;
  std::optional<std::int64_t> memory_limit;  // bytes per rank; none: the machine's
  std::int64_t top = 8;
  std::optional<std::chrono::milliseconds> budget;
  std::vector<Seed> seeds;
  // The most additional parts that mesh axes are cut into; none: 1 on up to two axes, else 0.
  std::optional<int> cuts;
  bool exhaustive = false;  // simulate every candidate
  // Simulates this many more schedules, slow ones too, and returns as many in SearchResult::spread.
  std::int64_t spread = 0;
  std::function<void(std::string_view stage, std::int64_t done, std::int64_t of)> progress;
  std::function<bool()> interrupted;  // polled often; true ends the search with what it has
  // Makes a plan's launch plan; none: every task is launched by itself.
  std::function<launch::LaunchPlan(const Plan& plan)> make_launches;
  // Proves a plan, or gives up once the time limit is over (I505). On many ranks only proved plans
  // are answers: the first one is proved, and the fastest of the others. None: nothing is proved.
  std::function<Checked<Ok>(const Plan& plan, const TimeLimit& limit)> prove;
};

// An evaluated candidate.
struct Evaluated {
  NormalForm form;
  std::string label;     // "ring" for a named schedule; else a description of its parts
  bool named = false;    // a hand-written baseline
  std::string excluded;  // why it is listed but never chosen: its homes, its sums; or ""
  Picoseconds bound;     // lower bound; 0 for a form outside the space of candidates
  Picoseconds estimate;  // from the outline
  std::optional<Picoseconds> simulated;
  std::int64_t memory_bytes = 0;
  bool proved = false;  // by SearchOptions::prove
  [[nodiscard]] Picoseconds time() const { return simulated.value_or(estimate); }
};

// The work that was unfinished when the time limit was over.
struct GivenUp {
  std::string label;
  std::string work;  // I505's text
  std::optional<Picoseconds> simulated;
};

struct Refused {
  std::string reason;  // a diagnostic's code and text
  std::int64_t count = 0;
};

struct SearchResult {
  std::int64_t candidates = 0;  // enumerated in the space, before any were dropped
  std::int64_t unique = 0;      // after canonical hashing
  std::int64_t duplicates = 0;  // found again as another candidate, evaluated once
  std::int64_t feasible = 0;    // within memory
  std::int64_t pruned = 0;      // by lower bound
  std::int64_t estimated = 0;
  std::int64_t simulated = 0;
  std::vector<Evaluated> top;        // best first
  std::vector<Evaluated> front;      // time-memory Pareto front, fastest first
  std::vector<Evaluated> baselines;  // named schedules, best first
  std::vector<Evaluated> spread;     // those behind the top, evenly spaced by rank, best first
  std::vector<Refused> refused;
  std::optional<Evaluated> nearest;    // if nothing fits: the one that misses by least
  bool complete = true;                // false: the budget or an interrupt ended it
  std::optional<GivenUp> given_up;     // by that end
  std::int64_t plans_left = 0;         // on many ranks: plans not made because of that end
  std::vector<std::string> too_large;  // named schedules whose plans are too large on so many ranks
  double seconds = 0;
};

// The best schedules of a program on a mesh of the machine's processors. Deterministic.
// Errors: M117; S701 nothing fits the memory, with the nearest miss; S702 the budget ended before
// any candidate was evaluated or, on many ranks, before any plan was proved.
[[nodiscard]] Checked<SearchResult> search(const Program& program, const Mesh& mesh,
                                           const Machine& machine, const SearchOptions& options);

// The name of schedules without a given name.
constexpr std::string_view kSearched = "searched";

// Every candidate of the space, each once, for exhaustive checks.
struct CandidateForms {
  std::vector<NormalForm> forms;
  std::int64_t candidates = 0;
  bool complete = true;  // false: the limit ended it
};
// Errors: S703.
[[nodiscard]] Checked<CandidateForms> list_candidates(const Program& program, const Mesh& mesh,
                                                      const Machine& machine,
                                                      const SearchOptions& options,
                                                      const TimeLimit& limit = {});

}  // namespace harpe
