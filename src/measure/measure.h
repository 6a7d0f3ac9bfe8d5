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
  FindWays libraries;  // measured beside the schedules; none: ways_here on GPUs
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::function<bool()> interrupted;
  Progress progress;
};

enum class MeasuredAs : std::uint8_t {
  Timed,
  NotReached,  // time was over before its turn
  Refused,     // it does not lower to a plan that runs there
  Wrong,       // its outputs differ from the reference
  Faulted,
};

// The result of executing a schedule or baseline.
struct MeasuredTurns {
  MeasuredAs outcome = MeasuredAs::NotReached;
  std::string code;         // the code of its refusal
  std::string reason;       // why it has no time
  double median_us = 0;     // of all counted executions; 0 if it has no time
  double noise = 0;         // relative uncertainty of the median
  std::int64_t rounds = 0;  // rounds that it completed
  std::int64_t executions = 0;
};

struct MeasuredSchedule : MeasuredTurns {
  Evaluated schedule;                // from the search
  std::int64_t predicted_place = 0;  // by prediction, among those with a time, from 1; 0: not
                                     // predicted
  bool is_predicted = true;          // false: a variant with libraries' kernels for its leaves
};

// A library execution of the operator.
struct MeasuredBaseline : MeasuredTurns {
  std::string name;  // "all-gather, GEMM"
};

struct Measured {
  Backend backend = Backend::Cpu;
  CollectiveEngine collectives = CollectiveEngine::Pull;
  std::string processor;                    // "NVIDIA H200"
  std::vector<MeasuredSchedule> all;        // fastest first, then those without a time
  std::vector<MeasuredBaseline> baselines;  // in the same order
  std::string no_baseline;                  // why there is none, if libraries were requested
  std::optional<Agreement> agreement;       // of predicted and measured times, if there are any
  std::int64_t rounds = 0;
  bool complete = true;  // false: the time limit or an interrupt ended it
  double seconds = 0;

  // The fastest; none if nothing has a time.
  [[nodiscard]] const MeasuredSchedule* winner() const;
  [[nodiscard]] const MeasuredBaseline* baseline() const;
  // The fastest baseline's time over the fastest schedule's; none if either has no time.
  [[nodiscard]] std::optional<double> baseline_ratio() const;
  [[nodiscard]] bool is_baseline_fastest() const;
  [[nodiscard]] std::int64_t count(MeasuredAs outcome) const;
};

// Executes the top of a search, its spread and the eligible named schedules: proved, on inputs
// drawn once, with outputs compared with the reference. On GPUs the top and the named schedules
// also run with libraries' kernels for leaves that these support. Then all alternate
// (measure/halving.h), with the libraries in every round. If not all fit into memory at once,
// executors are made again for their turns. Errors: prepare_run's; make_reference's; if nothing
// runs, why the best predicted one does not.
[[nodiscard]] Checked<Measured> measure(Session& session, const Program& program, const Mesh& mesh,
                                        const SearchResult& found, const MeasureRequest& request);

}  // namespace harpe
