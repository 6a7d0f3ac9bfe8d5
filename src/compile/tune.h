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

// The result of executing the schedules that a search found.
struct Tried {
  struct Fastest {
    Evaluated schedule;
    CachedTime time;
  };
  std::optional<Fastest> fastest;  // none if nothing ran
  bool complete = true;            // false: the time limit or an interrupt ended it
};
// Executes them. The search's budget covers both and ends at `deadline`. Errors: why nothing runs.
using TryOut = std::function<Checked<Tried>(
    const Program& program, const Mesh& mesh, const SearchResult& found,
    const std::optional<std::chrono::steady_clock::time_point>& deadline)>;

// The search for a command line: from a program, ranks and a machine to the best schedules.
struct TuneRequest {
  Request subject;
  SearchOptions search;       // `family` and `constraints` are filled in
  TryOut try_out = {};        // none: the fastest predicted schedule is the best
  bool verifies_all = false;  // verify_all follows, and gets half of the budget
};

// What a candidate's critical path is spent on.
struct PathSums {
  Picoseconds total;
  std::vector<std::pair<Spending, Picoseconds>> spent;  // largest first
};
[[nodiscard]] PathSums sum_path(const Simulation& simulation);

// A named schedule compared with the best: its relative time, and the causes of the difference.
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
  Constraints constraints;                    // of the subject
  SearchResult result;                        // if executed, the fastest is the first of the top
  std::optional<LibraryPrice> libraries;      // predicted, unless schedules were executed
  std::optional<Certificate> certificate;     // of the best, if its plan is made
  std::vector<SearchComparison> comparisons;  // with named schedules, best first
  std::optional<std::string> known_since;     // the date of an answer that was cached already
  std::int64_t seeds = 0;                     // cached schedules that it began with
};
// Searches, and proves the plan of the best schedule. Cache entries that cannot be read or used are
// skipped with warnings. Errors: Session's; machine_for's; search's; those of trying out;
// certify's.
[[nodiscard]] Checked<Tuned> tune(Session& session, const TuneRequest& request);

// The script of one of the found schedules, which reads back as a `.sched` file.
[[nodiscard]] std::string script_of(const Tuned& tuned, const Evaluated& one);

// Writes the best schedule's plan, proved. Errors: lower's, certify's; I102.
[[nodiscard]] Checked<Ok> write_best(const std::string& path, const Tuned& tuned);

}  // namespace harpe
