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

// The schedule `library`: libraries execute the operator instead of a plan.

// One way to execute it, compared with the others.
struct LibraryCandidate {
  std::string name;                 // "all-gather of keys"
  std::optional<double> median_us;  // none if it did not run, because of `reason`
  std::string reason;
};

struct LibraryOutcome {
  std::string name;  // of the way that ran
  // In a fixed order. A single way has no time, because there was no choice.
  std::vector<LibraryCandidate> candidates;
  RunOutcome outcome;
};

// Refuses everything that can be refused before libraries are opened. Errors: U109 unsupported by
// libraries; G081.
[[nodiscard]] Checked<Ok> check_library_run(const Request& subject, const RunRequest& request,
                                            const Program& program);

// Prepares inputs as prepare_run does, chooses the fastest of several ways, which alternate, and
// then does what run does. Errors: check_library_run's, Session's, prepare_run's; those of finding
// the ways; if no way runs, the first one's reason.
[[nodiscard]] Checked<LibraryOutcome> run_library(Session& session, const Request& subject,
                                                  const RunRequest& request,
                                                  const FindWays& find_ways);

// The predicted time of libraries beside the plan that `auto` selects on GPUs. None if the cache
// holds both times as measured; otherwise as price_libraries.
[[nodiscard]] std::optional<LibraryPrice> price_beside(Session& session, const Request& subject,
                                                       const Plan& plan);

// The cached schedule for such a run on these processors, if libraries were measured to be faster
// than the fastest schedule. None for plan files and for schedules other than `auto`.
[[nodiscard]] std::optional<CachedSchedule> recall_slower_schedule(Session& session,
                                                                   const Request& subject);

}  // namespace harpe
