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

// An input or output of a plan as a whole tensor, with the elements that each rank holds at home:
// its part of an input before an execution, and its part of a result after it.
struct Buffer {
  enum class Role : std::uint8_t { In, Out };
  std::string name;
  Role role = Role::In;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  // Per rank: rectangles that do not overlap, in the order of their indices. If several ranks hold
  // the same elements, each has a full copy unless `partial` is set.
  std::vector<std::vector<Rectangle>> homes;
  bool partial = false;  // ranks with the same elements hold partial results of them
};

// A part of a predicted time: "compute", "link", "signal", …
struct Share {
  std::string what;
  double us = 0;
};

// The result of simulating one execution.
struct Prediction {
  std::string machine;  // the machine's name
  double time_us = 0;
  // How far predictions of this operator's plans are from measurements, |predicted / measured - 1|:
  // the median, and the bound that nine of ten do not exceed. None if no plan was measured.
  std::optional<double> median_error;
  std::optional<double> error_90;
  std::vector<Share> critical_path;     // by cause, largest first; adds up to time_us
  double exposed_communication_us = 0;  // the worst rank's time waiting with nothing to compute
  std::int64_t peak_bytes = 0;          // of one rank, with its inputs and outputs
};

// Where a plan's schedule comes from.
enum class Origin : std::uint8_t {
  Caller,  // the question names it, or contains its text
  Text,    // the text that parse_plan() read
  Cache,   // an earlier search for the same question
  Search,  // a search for this question
  Rule,    // the operator's default rule, because no machine fits the mesh
};
struct Why {
  Origin origin = Origin::Caller;
  std::string text;  // the whole answer in one sentence
  // If a search chose it:
  std::int64_t candidates = 0;  // schedules in the space
  std::int64_t unique = 0;
  std::int64_t feasible = 0;  // those that fit the memory
  std::int64_t simulated = 0;
  double search_s = 0;
  std::string runner_up;            // the second best schedule; or ""
  double runner_up_us = 0;          // its predicted time
  std::vector<std::string> refits;  // transports replaced because the machine lacks them
};

// A plan in numbers.
struct PlanFacts {
  std::string op;                  // "attention"
  std::string mesh;                // "cp=8"
  std::string schedule;            // its name; show() has its text
  std::vector<std::string> steps;  // if a search found it: what it does, one line per step
  std::int64_t ranks = 0;
  std::int64_t tasks = 0;
  std::int64_t bytes_moved = 0;   // by one execution, over all ranks
  std::int64_t memory_bytes = 0;  // one rank's arena: inputs, outputs and intermediates
  double flops = 0;               // floating-point operations of one execution, over all ranks
  double balance = 1;             // the busiest rank's flops, relative to the mean
  // Which positions of each axis of inputs and outputs a rank holds: "contiguous" or "zigzag", as
  // in Question::layout; "whole" for all positions; or "other".
  std::map<std::string, std::string> layout;
};

// What the verifier proved about a plan, for all inputs and all interleavings of ranks: every
// output equals the program's, and no execution races or blocks.
struct Certificate {
  std::string covers;  // "every block of every rank"
  std::int64_t tasks = 0;
  std::int64_t order_edges = 0;     // signals and barriers that order tasks
  std::int64_t blocks_checked = 0;  // of outputs
  std::int64_t peak_bytes = 0;      // the largest arena of a rank; 0: unknown
};

// What every rank does, step by step: the tasks, transfers and signals that compute one operator on
// one mesh. Every plan is proved when it is made. A plan is immutable and shared: copies are cheap,
// and threads may use it concurrently.
class HARPE_API Plan {
 public:
  [[nodiscard]] const PlanFacts& facts() const;
  [[nodiscard]] const std::vector<Buffer>& buffers() const;          // inputs, then outputs
  [[nodiscard]] const std::optional<Prediction>& predicted() const;  // if it has a machine
  [[nodiscard]] const Why& why() const;
  [[nodiscard]] const Certificate& certificate() const;

  struct State;
  explicit Plan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Makes and proves a plan for the question. If the question has a machine, the plan uses transports
// that the machine has, and gets a predicted time. Errors: U1xx, I1xx, T0xx, P0xx, S0xx, F1xx, M1xx
// about the question's parts; I311 the schedule contradicts its homes or layout, S704 every
// schedule does; I503 too many tasks; I505 `progress` or `patience` ended the search.
[[nodiscard]] HARPE_API Checked<Plan> plan(const Question& question, const Options& options = {});

// Reads and proves a plan that show() printed, edited or not.
// Errors: T0xx, P0xx, I402 about the text; V2xx to V6xx findings about the plan.
[[nodiscard]] HARPE_API Checked<Plan> parse_plan(const std::string& text,
                                                 const Options& options = {});

// The texts of a plan: the program as `.op` text and the schedule as `.sched` text (a Question
// accepts both), the plan (parse_plan accepts it), and the launch plan for one H200 per rank.
// Errors, for launches only: G001 a build without CUDA; G0xx the GPUs cannot execute the plan.
enum class Stage : std::uint8_t { Program, Schedule, Plan, Launches };
[[nodiscard]] HARPE_API Checked<std::string> show(const Plan& plan, Stage stage = Stage::Plan);

// Draws one column per rank and one row per step: the blocks that arrive, and what is computed from
// them. Errors: U121 more ranks than columns.
enum class DrawingFormat : std::uint8_t { Text, Svg };
[[nodiscard]] HARPE_API Checked<std::string> draw(const Plan& plan, DrawingFormat format);

// An HTML page that needs no network: figures, timeline, critical path, taxes, roofline, memory,
// schedule and drawing of one execution on a machine. `machine` is as in Question; "" is the plan's
// own machine, or else the smallest shipped one that the plan fits on. If a search for that machine
// found the plan, the page also shows the search and compares its schedules. Errors: M1xx.
[[nodiscard]] HARPE_API Checked<std::string> report(const Plan& plan,
                                                    const std::string& machine = {});

// Options of a simulated execution.
enum class LaunchMode : std::uint8_t {
  Graph,  // each rank launches all kernels at once, as a CUDA graph
  Host,   // each rank's host thread launches the kernels one by one
};
struct SimulateOptions {
  LaunchMode launch = LaunchMode::Graph;
  std::optional<std::pair<std::int64_t, double>> delay = {};  // {rank, µs by which it starts late}
  bool trace = false;                                         // also make the timeline
};
struct Simulation {
  Prediction prediction;
  std::string trace;  // JSON of the trace event format (Perfetto, chrome://tracing); or ""
};
// Simulates one execution; `machine` as in report(). Errors: M1xx; U109 a delay of no rank, or out
// of range.
[[nodiscard]] HARPE_API Checked<Simulation> simulate(const Plan& plan,
                                                     const std::string& machine = {},
                                                     const SimulateOptions& options = {});

// How a predicted time divides (docs/taxes.md): the five parts from roofline_us to residual_us add
// up to time_us.
struct Taxes {
  std::string schedule;
  double time_us = 0;
  double roofline_us = 0;             // the busiest resource at full rate
  double launch_us = 0;               // late starts of kernels, copies and signals
  double synchronization_us = 0;      // barriers and waits for whole transfers
  double locality_us = 0;             // intermediates that pass through memory
  double residual_us = 0;             // tails, imbalance, contention
  double skew_sensitivity = 0;        // the part of one rank's delay that delays the end
  std::string bound;                  // the resource that sets the roofline
  std::optional<Error> refusal = {};  // why this schedule has no figures
};
// `machine` as in report(). Errors: M1xx.
[[nodiscard]] HARPE_API Checked<Taxes> taxes(const Plan& plan, const std::string& machine = {});
// The taxes of the question's schedule. For "auto": every named schedule that applies, fastest
// first, then those that do not fit the machine. Errors: plan()'s.
[[nodiscard]] HARPE_API Checked<std::vector<Taxes>> taxes(const Question& question,
                                                          const Options& options = {});

// How to search for the question's best schedules. tune() ignores Question::schedule.
struct TuneOptions {
  std::int64_t top = 8;                             // number of schedules to list
  std::optional<std::chrono::seconds> budget = {};  // the search then ends with what it has found
  std::optional<std::int64_t> memory_bytes = {};    // per rank; none: the machine's memory
  bool exhaustive = false;                          // simulate every candidate
  bool any_placement = false;                       // also search the homes of inputs and outputs
};
struct Candidate {
  std::string label;       // its name, or what its parts do
  bool named = false;      // one of schedules()
  std::string schedule;    // its text, as a Question accepts it
  double time_us = 0;      // predicted
  bool simulated = false;  // otherwise estimated
  std::int64_t memory_bytes = 0;
  std::string excluded;  // why it is listed but was not chosen; or ""
};
struct Refusal {
  std::string reason;
  std::int64_t count = 0;
};
struct Tuned {
  std::optional<Plan> best;     // proved; none if the ranks are too many to make a plan
  std::int64_t candidates = 0;  // in the space
  std::int64_t unique = 0;
  std::int64_t feasible = 0;  // those that fit the memory
  std::int64_t pruned = 0;    // excluded by lower bounds of their times
  std::int64_t estimated = 0;
  std::int64_t simulated = 0;
  double search_s = 0;
  bool complete = true;        // false: the budget or `progress` ended the search
  std::string known_since;     // the date of the cached answer that the search started from; or ""
  std::vector<Candidate> top;  // best first
  std::vector<Candidate> baselines;  // named schedules, best first
  std::vector<Refusal> refused;
};
// Errors: plan()'s; S701 nothing fits the memory; S702 the budget ended before the search found a
// schedule.
[[nodiscard]] HARPE_API Checked<Tuned> tune(const Question& question,
                                            const TuneOptions& tuning = {},
                                            const Options& options = {});

}  // namespace v1
}  // namespace harpe
