#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/session.h"
#include "harpe/plan.h"
#include "library/boundary.h"
#include "machine/machine.h"
#include "plan/plan.h"
#include "schedule/script.h"
#include "search/search.h"
#include "sim/simulate.h"
#include "verify/verify.h"

// What a public plan holds. Immutable once made.
struct harpe::v1::Plan::State {
  harpe::Plan plan;
  std::optional<harpe::Script> script;  // none if the text held only the normal form
  std::optional<Machine> machine;       // the machine the plan was made for
  std::optional<SearchResult> search;   // the search for that machine that found the schedule
  PlanFacts facts;
  std::vector<Buffer> buffers;
  Certificate certificate;
  std::optional<Prediction> predicted;
  Why why;
};

namespace harpe::library {

// The parts from which a plan is made.
struct PlanParts {
  Plan plan;
  std::optional<Script> script = {};
  std::optional<Machine> machine = {};  // that the plan fits
  std::optional<SearchResult> search = {};
  v1::Why why = {};
  std::optional<Certificate> certificate = {};  // set if the plan is already proved
};
// Proves the plan and predicts its time. Errors: prove's; simulate's; I505.
[[nodiscard]] harpe::Checked<v1::Plan> make_plan(PlanParts parts, Call& call);

// Converts the result of a simulation.
[[nodiscard]] v1::Prediction to_prediction(const Machine& machine, const std::string& family,
                                           const Simulation& simulation);

// The machine for a call about a plan: the given one, as in Question; else the plan's own; else the
// smallest that fits.
// Errors: machine_for's; check_fits'.
[[nodiscard]] harpe::Checked<Machine> machine_of(const v1::Plan::State& state,
                                                 const std::string& given);

}  // namespace harpe::library
