#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/session.h"
#include "measure/bench_cases.h"
#include "measure/limit.h"
#include "measure/statistics.h"
#include "run/backend.h"
#include "support/diag.h"

namespace harpe {

// The least number of rounds for a verdict of slower or faster.
constexpr std::int64_t kLeastPairedRounds = 20;

struct BenchRequest {
  std::string suite;
  std::vector<std::string> parameters;  // of a single case that replaces the suite's; none: the
                                        // suite's
  std::string only;                     // only cases of the suite with this text in their names
  std::vector<std::string> schedules;   // Harpe's; none: all that apply, and `auto`
  std::optional<std::int64_t> ranks;    // none: one per GPU, 4 on CPUs
  std::optional<std::int64_t> rounds;   // none: 20 on GPUs, 5 on CPUs
  std::int64_t iterations = 10;         // of a turn, back to back
  double budget_s = 600;                // no case begins after that
  // Per case: a search whose best schedules are executed, as in tuning by runs. Its choice is the
  // entry `tuned`. None: there is no such entry.
  std::optional<std::int64_t> tune_s;
  std::uint64_t seed = 0;
  bool check = false;  // compare small cases with the reference too
  BackendRequest backend;

  [[nodiscard]] std::int64_t rounds_here() const {
    return rounds.value_or(backend.backend == Backend::Cuda ? kLeastPairedRounds : 5);
  }
};

// Bytes on the GPU that uses most.
struct BenchMemory {
  std::int64_t planned = 0;    // the plan's bytes per rank, times the ranks on the GPU
  std::int64_t allocated = 0;  // arenas, signals, scratch and tables of kernels
  // The decrease of the GPU's free memory after a run: it includes kernels, graphs, streams and the
  // rounding of allocations, but no context. None where the GPU does not report it.
  std::optional<std::int64_t> taken;

  // True if `taken` differs by more than a tenth.
  [[nodiscard]] bool is_off() const;
};

// Adds to `taken` by how much the GPUs' free memory fell between two readings (FreeMemory). Does
// nothing if one reading is missing.
void add_taken(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
               std::vector<std::int64_t>& taken);

// One contender of a case: a schedule of Harpe's, or libraries.
struct BenchEntry {
  std::string name;
  std::string label;  // `tune`'s label for the choice of `tuned`
  bool is_baseline = false;
  std::optional<double> median_us;  // none if it did not run, because of `reason`
  std::string reason;
  std::string code;  // the code of a refusal
  double least_us = 0;
  double spread = 0;  // interquartile range of the times, relative to the median
  std::map<std::int64_t, double> round_us;  // the median of its turn, by round
  // Executions that alternate, each with its own memory; 1: one execution, repeated.
  std::int64_t copies = 1;
  // Further medians, which do not affect the ranking: one copy repeated, with what caches keep of
  // it; and several executions in one graph, divided by their number.
  std::optional<double> warm_us;
  std::optional<double> in_graph_us;
  // The difference from the outputs of the first baseline, relative to rows' scales. None if
  // outputs are too large to compare, and for that baseline itself.
  std::optional<double> difference;
  double bound = 0;
  std::optional<bool> checked;        // against the reference
  std::optional<BenchMemory> memory;  // for Harpe's schedules, on GPUs

  [[nodiscard]] bool is_wrong() const {
    return (difference && !(*difference <= bound)) || checked == false;
  }
};

// A schedule that a case lacks, and why.
struct BenchLack {
  std::string name;
  Diag why;
};

// The time of the fastest library over that of Harpe's fastest schedule, round by round, so that
// both have the same clocks. Above 1 Harpe is faster.
struct PairedSpeedup {
  enum class Verdict : std::uint8_t { Slower, Level, Faster };

  double median = 1;
  std::int64_t rounds = 0;
  std::optional<MedianInterval> interval;  // of the median, 95 %; none for fewer than six rounds

  // Slower or faster: by more than 2 %, over the whole interval. None below kLeastPairedRounds.
  [[nodiscard]] std::optional<Verdict> verdict() const;
};
[[nodiscard]] std::string_view print(PairedSpeedup::Verdict verdict);

struct BenchRow {
  BenchCase what;
  std::vector<BenchEntry> entries;
  std::vector<BenchLack> not_here;  // of those requested, or of the operator's
  std::string skipped;              // why the case did not begin
  Limit limit;

  // The fastest entry that ran and is not known to be wrong.
  [[nodiscard]] const BenchEntry* best(bool baseline) const;
  [[nodiscard]] std::optional<double> ratio() const;  // the baseline's time over Harpe's
  // For the two fastest entries. None if they had no round in common.
  [[nodiscard]] std::optional<PairedSpeedup> paired() const;
  [[nodiscard]] std::optional<double> over_limit() const;
};

struct BenchReport {
  std::int64_t ranks = 0;
  std::string mesh;
  std::string libraries;  // the libraries that Harpe is compared with
  std::vector<BenchRow> rows;

  // Over the cases that have a ratio.
  [[nodiscard]] std::optional<double> geometric_mean() const;
  [[nodiscard]] const BenchRow* worst() const;
  [[nodiscard]] bool is_wrong() const;
  // True if some schedule of Harpe's ran in every case that began.
  [[nodiscard]] bool is_whole() const;
};

using BenchProgress = std::function<void(const std::string& what)>;
// Called after each case, with the report so far.
using BenchSoFar = std::function<void(const BenchReport& report)>;

// The cases of a request on this many ranks: the suite's, or the request's own. Errors: U109 `only`
// leaves none; U160.
[[nodiscard]] Checked<std::vector<BenchCase>> cases_of(const BenchRequest& request,
                                                       std::int64_t ranks);

// Times Harpe's schedules and the baselines, case by case, alternating in one process. A schedule
// that cannot run becomes an entry with its reason. A schedule that an operator or a case lacks is
// left out there; it is an error only if no case has any of `schedules`. Errors: U160, U113;
// program's and mesh's of Session; Gpus::count's; G070.
[[nodiscard]] Checked<BenchReport> bench(Session& session, const BenchRequest& request,
                                         const BenchProgress& progress, const BenchSoFar& so_far);

}  // namespace harpe
