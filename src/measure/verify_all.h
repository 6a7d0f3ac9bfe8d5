#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/tune.h"
#include "search/search.h"
#include "support/diag.h"
#include "support/time_limit.h"

namespace harpe {

// The result of executing every candidate on CPU ranks at small sizes and comparing it with the
// reference.
struct VerifiedAll {
  std::int64_t candidates = 0;
  std::int64_t unique = 0;
  std::int64_t verified = 0;  // proved, executed and compared
  std::int64_t wrong = 0;
  std::vector<Refused> refused;       // those that do not lower to a plan, by reason
  std::vector<std::string> failures;  // the first few wrong ones, with their schedules
  bool complete = true;               // false: the time limit ended it before all were executed
  double seconds = 0;
};
// The candidate that runs when the time is over is the last one.
// Errors: list_candidates'; prepare_run's.
[[nodiscard]] Checked<VerifiedAll> verify_all(const Tuned& tuned, const SearchOptions& options,
                                              std::uint64_t seed, const TimeLimit& limit);

}  // namespace harpe
