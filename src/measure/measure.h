#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/session.h"
#include "measure/agreement.h"
#include "measure/library_ways.h"
#include "run/backend.h"
#include "search/search.h"
#include "support/diag.h"

namespace harpe {

using Progress = std::function<void(std::string_view stage, std::int64_t done, std::int64_t of)>;

struct MeasureRequest {
  std::int64_t iterations = 10;  // of a turn, back to back
  std::uint64_t seed = 0;        // of the inputs
  BackendRequest backend;
  FindWays libraries;  // that have their turns beside the schedules; none: on GPUs ways_here
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::function<bool()> interrupted;
  Progress progress;
};

enum class MeasuredAs : std::uint8_t {
  Timed,
  NotReached,  // the time was over before its turn
  Refused,     // it lowers to no plan that runs there
  Wrong,       // its outputs are not what the reference says
  Faulted,
};

// What came of executing something.
struct MeasuredTurns {
  MeasuredAs outcome = MeasuredAs::NotReached;
  std::string code;         // of what it was refused with
  std::string reason;       // why it has no time
  double median_us = 0;     // of all executions that count; 0 where it has no time
  double noise = 0;         // how far the median may be off, relative to it
  std::int64_t rounds = 0;  // that it went through
  std::int64_t executions = 0;
};

struct MeasuredSchedule : MeasuredTurns {
  Evaluated schedule;                // that was found
  std::int64_t predicted_place = 0;  // among those with a time, from 1; 0: not predicted
  bool is_predicted = true;          // false: like another, with libraries' kernels for its leaves
};

// How libraries do the operator.
struct MeasuredBaseline : MeasuredTurns {
  std::string name;  // "all-gather, product"
};

struct Measured {
  Backend backend = Backend::Cpu;
  CollectiveEngine collectives = CollectiveEngine::Pull;
  std::string processor;                    // "NVIDIA H200"
  std::vector<MeasuredSchedule> all;        // fastest first, then those without a time
  std::vector<MeasuredBaseline> baselines;  // as well
  std::string no_baseline;                  // why there is none, where libraries were asked for
  std::optional<Agreement> agreement;       // of predicted and measured times, where there are any
  std::int64_t rounds = 0;
  bool complete = true;  // false: time or an interrupt ended it
  double seconds = 0;

  // The fastest; none where nothing has a time.
  [[nodiscard]] const MeasuredSchedule* winner() const;
  [[nodiscard]] const MeasuredBaseline* baseline() const;
  // The fastest baseline's time over the fastest schedule's; none where either has none.
  [[nodiscard]] std::optional<double> baseline_ratio() const;
  [[nodiscard]] bool is_baseline_fastest() const;
  [[nodiscard]] std::int64_t count(MeasuredAs outcome) const;
};

// Executes the top of a search, its spread and the named schedules that may be chosen: proved, on
// inputs drawn once, outputs compared with the reference; on GPUs the top and the named ones once
// more with libraries' kernels for leaves that these can do; then in turns (measure/halving.h),
// with the libraries beside them in every round. Where not all fit into memory together, they are
// made anew for their turns. Errors: prepare_run's; make_reference's; where nothing runs, why the
// best predicted does not.
[[nodiscard]] Checked<Measured> measure(Session& session, const Program& program, const Mesh& mesh,
                                        const SearchResult& found, const MeasureRequest& request);

}  // namespace harpe
