#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/library_price.h"
#include "compile/plan_cache.h"
#include "compile/session.h"
#include "measure/library_ways.h"
#include "run/run.h"
#include "support/diag.h"

namespace harpe {

// The schedule `library`: the operator as libraries do it, in place of a plan.

// One of the ways, beside the others.
struct LibraryCandidate {
  std::string name;                 // "all-gather of keys"
  std::optional<double> median_us;  // none where it did not run, for this reason:
  std::string reason;
};

struct LibraryOutcome {
  std::string name;  // of the one that ran
  // In the order they are known in; a single one has no time, for there was nothing to choose.
  std::vector<LibraryCandidate> candidates;
  RunOutcome outcome;
};

// Everything that can be refused before libraries are looked for. Errors: U109 what libraries are
// not for; G081.
[[nodiscard]] Checked<Ok> check_library_run(const Request& subject, const RunRequest& request,
                                            const Program& program);

// Inputs as prepare_run has them; of several ways the fastest in turns; then what run does.
// Errors: check_library_run's, Session's, prepare_run's; those of finding the ways; where none
// runs, why the first does not.
[[nodiscard]] Checked<LibraryOutcome> run_library(Session& session, const Request& subject,
                                                  const RunRequest& request,
                                                  const FindWays& find_ways);

// What libraries are predicted to take beside the plan that `auto` means on GPUs. None where the
// cache knows both times as measured, and otherwise as price_libraries.
[[nodiscard]] std::optional<LibraryPrice> price_beside(Session& session, const Request& subject,
                                                       const Plan& plan);

// What the cache knows of such a run on these processors, where libraries were faster than the
// fastest schedule. None for plan files and schedules that are not `auto`.
[[nodiscard]] std::optional<CachedSchedule> recall_slower_schedule(Session& session,
                                                                   const Request& subject);

}  // namespace harpe
