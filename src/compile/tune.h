#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/certify.h"
#include "compile/library_price.h"
#include "compile/session.h"
#include "machine/machine.h"
#include "search/cache.h"
#include "search/search.h"
#include "sim/simulate.h"
#include "support/diag.h"

namespace harpe {

// What came of executing schedules that a search found.
struct Tried {
  struct Fastest {
    Evaluated schedule;
    CachedTime time;
  };
  std::optional<Fastest> fastest;  // none where nothing ran
  bool complete = true;            // false: time or an interrupt ended it
};
// Executes them; the budget of the search is for both, and ends then. Errors: why nothing runs.
using TryOut = std::function<Checked<Tried>(
    const Program& program, const Mesh& mesh, const SearchResult& found,
    const std::optional<std::chrono::steady_clock::time_point>& deadline)>;

// The search for a command line: a program, ranks and a machine in, the best schedules out.
struct TuneRequest {
  Request subject;
  SearchOptions search;       // `family` and `constraints` are filled in
  TryOut try_out = {};        // none: what is predicted to be the fastest is the best
  bool verifies_all = false;  // verify_all follows, for which half of the budget is kept
};

// What a candidate's critical path is spent on.
struct PathSums {
  Picoseconds total;
  std::vector<std::pair<Spending, Picoseconds>> spent;  // most first
};
[[nodiscard]] PathSums sum_path(const Simulation& simulation);

// A named schedule against the best: how much longer, and where the difference lies.
struct SearchComparison {
  std::string schedule;
  double ratio = 1;                                            // its time over the best's
  std::string excluded;                                        // as Evaluated::excluded
  std::vector<std::pair<Spending, std::int64_t>> differences;  // picoseconds, largest first
};

struct Tuned {
  Program program;
  Mesh mesh;
  Machine machine;
  Constraints constraints;  // of the subject
  SearchResult result;      // where it was tried out, the fastest is the first of the top
  std::optional<LibraryPrice> libraries;   // predicted, beside the best; where none was tried out
  std::optional<Certificate> certificate;  // of the best, where its plan is made
  std::vector<SearchComparison> comparisons;  // of the named ones, best first
  std::optional<std::string> known_since;     // the date of an answer that the cache had already
  std::int64_t seeds = 0;                     // schedules of the cache that it began with
};
// The best schedule's plan is proved. Entries of the cache that cannot be read or used are passed
// over with warnings. Errors: Session's; machine_for's; search's; those of
// trying out; certify's.
[[nodiscard]] Checked<Tuned> tune(Session& session, const TuneRequest& request);

// The script of one of the schedules found: reads back as a `.sched` file.
[[nodiscard]] std::string script_of(const Tuned& tuned, const Evaluated& one);

// The best schedule's plan, proved. Errors: lower's, certify's; I102.
[[nodiscard]] Checked<Ok> write_best(const std::string& path, const Tuned& tuned);

}  // namespace harpe
