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

// What a public plan stands for; never changed once it is made.
struct harpe::v1::Plan::State {
  harpe::Plan plan;
  std::optional<harpe::Script> script;  // none where a text held the normal form alone
  std::optional<Machine> machine;       // that it was made for
  std::optional<SearchResult> search;   // for that machine, which found its schedule
  PlanFacts facts;
  std::vector<Buffer> buffers;
  Certificate certificate;
  std::optional<Prediction> predicted;
  Why why;
};

namespace harpe::library {

// What a plan is made with.
struct PlanParts {
  Plan plan;
  std::optional<Script> script = {};
  std::optional<Machine> machine = {};  // that it fits
  std::optional<SearchResult> search = {};
  v1::Why why = {};
  std::optional<Certificate> certificate = {};  // where it is proved already
};
// Proves it, and predicts its time. Errors: prove's; simulate's; I505.
[[nodiscard]] harpe::Checked<v1::Plan> make_plan(PlanParts parts, Call& call);

// What a simulation says.
[[nodiscard]] v1::Prediction to_prediction(const Machine& machine, const std::string& family,
                                           const Simulation& simulation);

// The machine of a call about a plan: as in Question, or the plan's own, or the smallest one.
// Errors: machine_for's; check_fits'.
[[nodiscard]] harpe::Checked<Machine> machine_of(const v1::Plan::State& state,
                                                 const std::string& given);

}  // namespace harpe::library
