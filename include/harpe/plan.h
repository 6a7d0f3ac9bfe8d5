#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harpe/api.h"
#include "harpe/error.h"
#include "harpe/question.h"

namespace harpe {
HARPE_INLINE namespace v1 {
enum class DType : std::uint8_t { F32, F16, BF16, F64, F8E4M3, F8E5M2, I8, U8, I32, I64, Bool };
[[nodiscard]] HARPE_API std::int64_t size_in_bytes(DType dtype);
[[nodiscard]] HARPE_API std::string print(DType dtype);  // "bf16"

// The indices begin, …, end - 1 along one dimension.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
// A block of elements of a tensor: one range per dimension.
using Rectangle = std::vector<Range>;

// An input or output of a plan, as a whole tensor, and which of its elements each rank holds at
// home: there an input is before an execution, and a result after it.
struct Buffer {
  enum class Role : std::uint8_t { In, Out };
  std::string name;
  Role role = Role::In;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  // By rank: rectangles that do not overlap, in the order of their indices. Where several ranks
  // hold the same elements, each has a copy; but see `partial`.
  std::vector<std::vector<Rectangle>> homes;
  bool partial = false;  // ranks with the same elements hold partial results, to be combined
};

// A part of a predicted time: "compute", "link", "signal", …
struct Share {
  std::string what;
  double us = 0;
};

// What a simulation of one execution says.
struct Prediction {
  std::string machine;  // its name
  double time_us = 0;
  // How far predicted times of the operator's plans are from measured ones, |predicted / measured -
  // 1|: the median, and what nine of ten do not exceed. None where no plan was measured.
  std::optional<double> median_error;
  std::optional<double> error_90;
  std::vector<Share> critical_path;     // what it is spent on, most first; adds up to time_us
  double exposed_communication_us = 0;  // of the worst rank: nothing to compute while it waits
  std::int64_t peak_bytes = 0;          // of one rank, its inputs and outputs included
};

// Where a plan's schedule comes from.
enum class Origin : std::uint8_t {
  Caller,  // named by the question, or given as a text
  Text,    // of a plan that was parsed
  Cache,   // an earlier search of the same question found it
  Search,  // a search found it now
  Rule,    // no machine fits the mesh, so the operator's own rule chose it
};
struct Why {
  Origin origin = Origin::Caller;
  std::string text;  // the whole answer in one sentence
  // Of a search:
  std::int64_t candidates = 0;  // schedules in the space
  std::int64_t unique = 0;
  std::int64_t feasible = 0;  // that fit the memory
  std::int64_t simulated = 0;
  double search_s = 0;
  std::string runner_up;            // the second best schedule; or ""
  double runner_up_us = 0;          // its predicted time
  std::vector<std::string> refits;  // transfers that the machine makes otherwise than the schedule
};

// A plan in figures.
struct PlanFacts {
  std::string op;                  // "attention"
  std::string mesh;                // "cp=8"
  std::string schedule;            // its name; show() has its text
  std::vector<std::string> steps;  // where a search found it: what it does, a line each
  std::int64_t ranks = 0;
  std::int64_t tasks = 0;
  std::int64_t bytes_moved = 0;   // by one execution, over all ranks
  std::int64_t memory_bytes = 0;  // of one rank's arena: inputs, outputs and all in between
  double flops = 0;               // floating-point operations of one execution, over all ranks
  double balance = 1;             // the busiest rank's share of them, relative to the mean
  // By axis of inputs and outputs, which of its positions a rank holds: "contiguous" or "zigzag",
  // as a Question says it; "whole", all of them; or "other".
  std::map<std::string, std::string> layout;
};

// What was proved of a plan for all inputs and all interleavings of ranks: every output is the
// program's, no execution races or blocks.
struct Certificate {
  std::string covers;  // "every block of every rank"
  std::int64_t tasks = 0;
  std::int64_t order_edges = 0;     // signals and barriers that order them
  std::int64_t blocks_checked = 0;  // of outputs
  std::int64_t peak_bytes = 0;      // the largest arena of a rank; 0: not known
};

// What every rank does, step by step: the tasks, transfers and signals that compute one operator
// on one mesh. Every plan is proved when it is made. Immutable and shared: copies are cheap, and
// threads may use one at the same time.
class HARPE_API Plan {
 public:
  [[nodiscard]] const PlanFacts& facts() const;
  [[nodiscard]] const std::vector<Buffer>& buffers() const;          // inputs, then outputs
  [[nodiscard]] const std::optional<Prediction>& predicted() const;  // where it has a machine
  [[nodiscard]] const Why& why() const;
  [[nodiscard]] const Certificate& certificate() const;

  struct State;
  explicit Plan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// The question's plan; for a machine, with transports that the machine has, and its predicted
// time. Errors: U1xx, I1xx, T0xx, P0xx, S0xx, F1xx, M1xx of what the question holds; I311 its
// schedule does not keep to its homes or layout, S704 none does; I503 too many tasks; I505 given
// up.
[[nodiscard]] HARPE_API Checked<Plan> plan(const Question& question, const Options& options = {});

// The plan of a text that show() made, edited or not.
// Errors: T0xx, P0xx, I402 of the text; V2xx to V6xx what is wrong with the plan.
[[nodiscard]] HARPE_API Checked<Plan> parse_plan(const std::string& text,
                                                 const Options& options = {});

// The texts of a plan, which read back: the program as a `.op` text, the schedule as a `.sched`
// text (both are taken by a Question), the plan (parse_plan takes it), and what an H200 per rank
// would launch for it. Errors, of launches alone: G001 a build without CUDA; G0xx what GPUs
// cannot do.
enum class Stage : std::uint8_t { Program, Schedule, Plan, Launches };
[[nodiscard]] HARPE_API Checked<std::string> show(const Plan& plan, Stage stage = Stage::Plan);

// A column per rank, a row per step: which blocks arrive, and what is computed from them.
// Errors: U121 more ranks than columns.
enum class DrawingFormat : std::uint8_t { Text, Svg };
[[nodiscard]] HARPE_API Checked<std::string> draw(const Plan& plan, DrawingFormat format);

// An HTML page that needs no network: figures, timeline, critical path, taxes, roofline, memory,
// schedule and drawing of one execution on a machine (as in Question; "": the plan's own, else the
// smallest shipped one that it fits on). Where a search for that machine found the plan, also the
// search and the schedules that it compares. Errors: M1xx.
[[nodiscard]] HARPE_API Checked<std::string> report(const Plan& plan,
                                                    const std::string& machine = {});

// One execution on a machine (as in report()).
enum class LaunchMode : std::uint8_t {
  Graph,  // all kernels at once, as a CUDA graph
  Host,   // one by one by each rank's host thread
};
struct SimulateOptions {
  LaunchMode launch = LaunchMode::Graph;
  std::optional<std::pair<std::int64_t, double>> delay = {};  // {rank, µs} that it starts late
  bool trace = false;                                         // make the timeline too
};
struct Simulation {
  Prediction prediction;
  std::string trace;  // JSON of the trace event format (Perfetto, chrome://tracing); or ""
};
// Errors: M1xx; U109 a delay of no rank, or out of range.
[[nodiscard]] HARPE_API Checked<Simulation> simulate(const Plan& plan,
                                                     const std::string& machine = {},
                                                     const SimulateOptions& options = {});

// How a predicted time divides (docs/taxes.md): the five parts add up to time_us.
struct Taxes {
  std::string schedule;
  double time_us = 0;
  double roofline_us = 0;             // the busiest resource at full rate
  double launch_us = 0;               // kernels, copies and signals that start late
  double synchronization_us = 0;      // barriers and waits for whole transfers
  double locality_us = 0;             // intermediates that pass through memory
  double residual_us = 0;             // tails, imbalance, contention
  double skew_sensitivity = 0;        // how much of one rank's delay the whole execution takes over
  std::string bound;                  // the resource of the roofline
  std::optional<Error> refusal = {};  // why there are no figures of this schedule
};
// Machine as in report(). Errors: M1xx.
[[nodiscard]] HARPE_API Checked<Taxes> taxes(const Plan& plan, const std::string& machine = {});
// Of the question's schedule; of "auto", every named schedule that applies, fastest first, then
// those that do not fit the machine. Errors: plan()'s.
[[nodiscard]] HARPE_API Checked<std::vector<Taxes>> taxes(const Question& question,
                                                          const Options& options = {});

// A search for the question's best schedules; its own `schedule` is not used.
struct TuneOptions {
  std::int64_t top = 8;                             // how many to list
  std::optional<std::chrono::seconds> budget = {};  // the search ends then with what it has
  std::optional<std::int64_t> memory_bytes = {};    // of one rank; none: the machine's
  bool exhaustive = false;                          // simulate every candidate
  bool any_placement = false;  // search where inputs and outputs live too, not only the operator's
};
struct Candidate {
  std::string label;       // the name, or what its parts do
  bool named = false;      // one of schedules()
  std::string schedule;    // its text, as a Question takes it
  double time_us = 0;      // predicted
  bool simulated = false;  // else estimated
  std::int64_t memory_bytes = 0;
  std::string excluded;  // why it is listed and not chosen; or ""
};
struct Refusal {
  std::string reason;
  std::int64_t count = 0;
};
struct Tuned {
  std::optional<Plan> best;     // proved; none where the ranks are too many for a plan to be made
  std::int64_t candidates = 0;  // in the space
  std::int64_t unique = 0;
  std::int64_t feasible = 0;  // that fit the memory
  std::int64_t pruned = 0;    // by lower bounds of their times
  std::int64_t estimated = 0;
  std::int64_t simulated = 0;
  double search_s = 0;
  bool complete = true;              // false: budget or progress ended it
  std::string known_since;           // the date of an equal answer in the cache; or ""
  std::vector<Candidate> top;        // best first
  std::vector<Candidate> baselines;  // named schedules, best first
  std::vector<Refusal> refused;
};
// Errors: plan()'s; S701 nothing fits the memory; S702 the time was over before anything was
// found.
[[nodiscard]] HARPE_API Checked<Tuned> tune(const Question& question,
                                            const TuneOptions& tuning = {},
                                            const Options& options = {});

}  // namespace v1
}  // namespace harpe
