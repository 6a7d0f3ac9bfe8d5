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

// Rounds from which on a case may be called slower or faster.
constexpr std::int64_t kLeastPairedRounds = 20;

struct BenchRequest {
  std::string suite;
  std::vector<std::string> parameters;  // the one case, in place of the suite's; none: those
  std::string only;                     // of the suite's cases, those with this in their names
  std::vector<std::string> schedules;   // of ours; none: all that apply, and `auto`
  std::optional<std::int64_t> ranks;    // none: one per GPU, 4 on CPUs
  std::optional<std::int64_t> rounds;   // none: 20 on GPUs, 5 on CPUs
  std::int64_t iterations = 10;         // of a turn, back to back
  double budget_s = 600;                // no case begins after that
  // Of each case: a search whose best schedules are executed, as tuning by runs does; what it
  // chooses is the entry `tuned`. None: there is no such entry.
  std::optional<std::int64_t> tune_s;
  std::uint64_t seed = 0;
  bool check = false;  // small cases against the reference too
  BackendRequest backend;

  [[nodiscard]] std::int64_t rounds_here() const {
    return rounds.value_or(backend.backend == Backend::Cuda ? kLeastPairedRounds : 5);
  }
};

// Bytes of the GPU where they are most.
struct BenchMemory {
  std::int64_t planned = 0;    // what the plan says of a rank, times the ranks there
  std::int64_t allocated = 0;  // arenas, signals, scratch and tables of kernels
  // What is gone of the GPU's free memory once it has run: kernels, graphs and streams too, and
  // what allocations are rounded up to, but no context. None where the GPU does not say.
  std::optional<std::int64_t> taken;

  // More than a tenth, whatever it is of.
  [[nodiscard]] bool is_off() const;
};

// By how much GPUs' free memory got less between two looks (FreeMemory), added to `taken`; nothing
// where one did not say.
void add_taken(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
               std::vector<std::int64_t>& taken);

// One way to do a case: a schedule of ours, or libraries.
struct BenchEntry {
  std::string name;
  std::string label;  // what `tuned` chose, as `tune` calls it
  bool is_baseline = false;
  std::optional<double> median_us;  // none where it did not run, for this reason:
  std::string reason;
  std::string code;  // of a refusal
  double least_us = 0;
  double spread = 0;  // quarters of the times around the median, relative to it
  std::map<std::int64_t, double> round_us;  // the median of its turn in each round that it had one
  // Of executions in turns, each with memory of its own; 1: one over and over.
  std::int64_t copies = 1;
  // Further medians, which decide nothing. Of one copy over and over, with what caches keep of it;
  // of several executions in one graph, over their number.
  std::optional<double> warm_us;
  std::optional<double> in_graph_us;
  // Against the outputs of the first baseline, relative to rows' scales; none where they are too
  // large to be looked at, and for that baseline itself.
  std::optional<double> difference;
  double bound = 0;
  std::optional<bool> checked;        // against the reference
  std::optional<BenchMemory> memory;  // of ours, on GPUs

  [[nodiscard]] bool is_wrong() const {
    return (difference && !(*difference <= bound)) || checked == false;
  }
};

// A schedule that a case has not, and why.
struct BenchLack {
  std::string name;
  Diag why;
};

// The fastest library's time over that of Harpe's fastest, round by round, so that clocks are the
// same on both sides; above 1 Harpe is faster.
struct PairedSpeedup {
  enum class Verdict : std::uint8_t { Slower, Level, Faster };

  double median = 1;
  std::int64_t rounds = 0;
  std::optional<MedianInterval> interval;  // of the median, 95 %; none of fewer than six rounds

  // Slower or faster: by more than 2 %, over all of the interval. None below kLeastPairedRounds.
  [[nodiscard]] std::optional<Verdict> verdict() const;
};
[[nodiscard]] std::string_view print(PairedSpeedup::Verdict verdict);

struct BenchRow {
  BenchCase what;
  std::vector<BenchEntry> entries;
  std::vector<BenchLack> not_here;  // of those asked for, or of the operator's
  std::string skipped;              // why it did not begin
  Limit limit;

  // The fastest that ran and is not known to be wrong.
  [[nodiscard]] const BenchEntry* best(bool baseline) const;
  [[nodiscard]] std::optional<double> ratio() const;  // the baseline's time over ours
  // Of the two fastest. None where they had no round in common.
  [[nodiscard]] std::optional<PairedSpeedup> paired() const;
  [[nodiscard]] std::optional<double> over_limit() const;
};

struct BenchReport {
  std::int64_t ranks = 0;
  std::string mesh;
  std::string libraries;  // what ours is compared with
  std::vector<BenchRow> rows;

  // Over the cases that have a ratio.
  [[nodiscard]] std::optional<double> geometric_mean() const;
  [[nodiscard]] const BenchRow* worst() const;
  [[nodiscard]] bool is_wrong() const;
  // Something of ours ran in every case that began.
  [[nodiscard]] bool is_whole() const;
};

using BenchProgress = std::function<void(const std::string& what)>;
// What there is after each case.
using BenchSoFar = std::function<void(const BenchReport& report)>;

// What it asks for on so many ranks: the suite's cases, or the one of its own. Errors: U109
// none that `only` leaves; U160.
[[nodiscard]] Checked<std::vector<BenchCase>> cases_of(const BenchRequest& request,
                                                       std::int64_t ranks);

// Ours and the baselines, case by case, in turns in one process. A schedule that cannot run is an
// entry with its reason, and what an operator or a case lacks is left out of it, but where no case
// has any of `schedules`. Errors: U160, U113; program's and mesh's of Session; Gpus::count's; G070.
[[nodiscard]] Checked<BenchReport> bench(Session& session, const BenchRequest& request,
                                         const BenchProgress& progress, const BenchSoFar& so_far);

}  // namespace harpe
