#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/certify.h"
#include "driver/library_price.h"
#include "driver/measure.h"
#include "driver/session.h"
#include "machine/machine.h"
#include "search/search.h"
#include "sim/simulate.h"
#include "support/diag.h"

namespace harpe {

// The search for a command line: a program, ranks and a machine in, the best schedules out.
struct TuneRequest {
  Request subject;
  SearchOptions search;            // `family` and `fixed` are filled in
  std::vector<std::string> homes;  // "k=Skv@node,Skv@gpu", "q=": of buffers that stay as given
  // Executes what was found and chooses by that; its deadline, progress and interrupt are those of
  // the search, whose budget is for both.
  std::optional<MeasureRequest> measure;
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
  SearchResult result;  // where it was measured, the fastest is the first of the top
  std::optional<Measured> measured;
  std::optional<LibraryPrice> libraries;      // predicted, beside the best; where none was measured
  std::optional<Certificate> certificate;     // of the best, where its plan is made
  std::vector<SearchComparison> comparisons;  // of the named ones, best first
  std::optional<std::string> known_since;     // the date of an answer that the cache had already
  std::int64_t seeds = 0;                     // schedules of the cache that it began with
};
// The best schedule's plan is proved. Entries of the cache that cannot be read or used are passed
// over with warnings, also below. Errors: Session's; machine_for's; search's; measure's;
// certify's.
[[nodiscard]] Checked<Tuned> tune(Session& session, const TuneRequest& request);

// What `auto` means: what an earlier search of the same found (answer_of), or the search's choice
// on the machine; where there is no space or no machine large enough, the rule of the operator
// (schedule/named/registry.h, choose_auto). What does not run on `runs_on` is passed over.
// Errors: load_machine's; S701; I505 beyond `patience`; choose_auto's.
[[nodiscard]] Checked<NormalForm> choose_schedule(Session& session, const Program& program,
                                                  const Mesh& mesh, const Request& request);

// The script of one of the schedules found: reads back as a `.sched` file.
[[nodiscard]] std::string script_of(const Tuned& tuned, const Evaluated& one);

// The best schedule's plan, proved. Errors: lower's, certify's; I102.
[[nodiscard]] Checked<Ok> write_best(const std::string& path, const Tuned& tuned);

// The report page of a search: the best schedule and the nearest named ones. Errors: lower's;
// check_fits'; I102.
[[nodiscard]] Checked<Ok> write_report(const std::string& path, const std::string& command,
                                       const std::string& version, const Tuned& tuned);

// Executes every candidate on CPU ranks, at the given (small) sizes, against the reference.
struct VerifiedAll {
  std::int64_t candidates = 0;
  std::int64_t unique = 0;
  std::int64_t verified = 0;  // proved, executed and compared
  std::int64_t wrong = 0;
  std::vector<Refused> refused;       // that lower to no plan, by reason
  std::vector<std::string> failures;  // the first few wrong ones, with their schedules
  bool complete = true;  // false: the limit ended it, and the others were not looked at
  double seconds = 0;
};
// The candidate that is being executed when the time is over is the last.
// Errors: list_candidates'; prepare_run's.
[[nodiscard]] Checked<VerifiedAll> verify_all(const Tuned& tuned, const SearchOptions& options,
                                              std::uint64_t seed, const TimeLimit& limit);

}  // namespace harpe
