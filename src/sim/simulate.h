#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "sim/engine.h"
#include "support/diag.h"
#include "support/time_limit.h"

namespace harpe {

enum class Launch : std::uint8_t {
  Graph,  // replayed: kernels start `kernel_start` after they are ready
  Host,   // each rank's host thread issues them, `kernel_issue` apart
};

// What successive idealisation removes (sim/taxes.h). Simulations of the plan itself remove
// nothing.
struct Idealisation {
  bool no_launch = false;       // kernels, copies and signals start the moment they can
  bool tile_edges = false;      // a task starts when the first part of its operands is there
  bool no_round_trips = false;  // intermediates do not pass through memory
  friend bool operator==(const Idealisation&, const Idealisation&) = default;
};

// Ranks that do the same at the same time are simulated once (sim/fold.h).
enum class Fold : std::uint8_t { Auto, Off };

struct SimulateOptions {
  Launch launch = Launch::Graph;
  Idealisation ideal;
  struct Delay {
    RankId rank;
    Picoseconds time;
  };
  std::optional<Delay> delay;  // a rank that starts late
  Fold fold = Fold::Auto;
};

// What a part of the critical path is spent on.
enum class Spending : std::uint8_t {
  Compute,
  Memory,
  Link,
  Message,
  Launch,
  Signal,
  Barrier,
  Fold,
};
struct Segment {
  Spending spending = Spending::Compute;
  Picoseconds begin, end;
  TaskId task;       // the task that it belongs to
  std::string what;  // "compute fwd, rank 3", "link into rank 2"
  friend bool operator==(const Segment&, const Segment&) = default;
};

struct ResourceShare {
  Resource resource;
  std::string name;        // "rank 3 nvlink in"
  double utilisation = 0;  // of capacity x total time
  friend bool operator==(const ResourceShare&, const ResourceShare&) = default;
};

struct MemoryPoint {
  Picoseconds time;
  std::int64_t bytes = 0;  // of the fullest rank
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

struct Simulation {
  Picoseconds total;
  std::vector<Span> tasks;             // per task of the plan; Span::cause is a task
  std::vector<Resource> resources;     // indexed by Span::bound
  std::vector<Segment> critical_path;  // in time order, without gaps
  std::vector<ResourceShare> shares;
  Picoseconds exposed_communication;  // of the worst rank: its SMs idle while it waits for data
  std::vector<MemoryPoint> memory;    // of the fullest rank over time
  std::int64_t peak_bytes = 0;        // arena and homes of one rank
  std::vector<std::int64_t> bytes_per_level;  // crossing the level, over all ranks
  std::int64_t activities = 0;
  std::int64_t ranks_simulated = 0;  // each other rank does what one of these does
};

// Errors: M117 too few processors.
[[nodiscard]] Checked<Ok> check_ranks(const Mesh& mesh, const Machine& machine);

// Errors if the plan's ranks do not fit the machine; rank r is processor r: M117 too few
// processors, M118 a transport that no level between two ranks has.
[[nodiscard]] Checked<Ok> check_fits(const Plan& plan, const Machine& machine);

// Errors: M121 the time is the longest that Picoseconds can hold. `what` has that time: "the plan".
[[nodiscard]] Checked<Ok> check_time(Picoseconds time, std::string_view what,
                                     const Machine& machine);

// Requires: a verified plan; check_fits. Errors: check_time's.
[[nodiscard]] Checked<Simulation> simulate(const Plan& plan, const launch::LaunchPlan& launches,
                                           const Machine& machine,
                                           const SimulateOptions& options = {});

// Simulation::total alone. Requires: as simulate. Errors: I505 the limit is over; check_time's.
[[nodiscard]] Checked<Picoseconds> simulate_total(const Plan& plan,
                                                  const launch::LaunchPlan& launches,
                                                  const Machine& machine, const TimeLimit& limit);

}  // namespace harpe
