#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compile/launches.h"
#include "compile/machines.h"
#include "compile/session.h"
#include "compile/simulation.h"
#include "ir/text.h"
#include "search/search.h"
#include "sim/simulate.h"
#include "sim/taxes.h"

// More work never takes less time, and a slower machine is never faster. If a size is too large to
// represent, it and all larger sizes are refused.
namespace harpe {
namespace {

struct Ladder {
  std::string target;
  std::vector<std::string> fixed;
  std::vector<std::string> doubled;  // parameters set to each size
  std::string mesh;
  std::string schedule;
};

const std::vector<Ladder> kLadders = {
    {"attention", {"heads=8"}, {"seq"}, "cp=8", "ring"},
    {"attention", {"heads=8", "causal=true"}, {"seq"}, "cp=8", "zigzag_ring"},
    {"attention", {"heads=8"}, {"seq", "head_dim"}, "cp=8", "allgather"},
    {"attention_bwd", {"heads=8"}, {"seq"}, "cp=4", "ring"},
    {"gemm", {}, {"m", "n", "k"}, "r=2,c=2", "grid2d"},
    {"ag_gemm", {"n=4096", "k=4096"}, {"m"}, "tp=8", "bulk"},
    {"gemm_rs", {"m=4096", "n=4096"}, {"k"}, "tp=8", "ring"},
    {"gemm_ar", {}, {"m", "n", "k"}, "tp=8", "bulk"},
    {"decode", {"heads=8"}, {"kv"}, "cp=8", "push"},
};

Request request_of(const Ladder& ladder, std::int64_t size) {
  Request request{.target = ladder.target,
                  .parameters = ladder.fixed,
                  .inputs = {},
                  .mesh = ladder.mesh,
                  .schedule = ladder.schedule};
  for (const std::string& name : ladder.doubled) {
    request.parameters.push_back(name + "=" + std::to_string(size));
  }
  return request;
}

Checked<Picoseconds> time_of(const Request& request, const Machine& machine) {
  Session session(false);
  HP_TRY(const FittedPlan fitted, plan_for(session, request, machine));
  HP_TRY(const Simulation simulation,
         simulate(fitted.plan, launches_on(fitted.plan, machine), machine));
  return simulation.total;
}

TEST(Growth, twice_the_size_never_takes_less_time) {
  const std::vector<std::string> machines = {"h200x8", "h200x8x2", "cpu"};
  for (const std::string& name : machines) {
    Machine machine = *load_machine(name);
    machine.samples.clear();  // measurements are not smooth
    for (const Ladder& ladder : kLadders) {
      Picoseconds before;
      bool is_refused = false;
      int answered = 0;
      // For sizes below 2^8 GPUs launch other kernels, which may take longer.
      for (int power = 8; power < 63; ++power) {
        const Checked<Picoseconds> time =
            time_of(request_of(ladder, std::int64_t{1} << power), machine);
        const std::string which =
            ladder.target + " " + ladder.schedule + " 2^" + std::to_string(power) + " on " + name;
        if (!time.ok()) {
          const std::string_view code = info(time.error().code).name;
          EXPECT_TRUE(code == "M121" || code == "P103" || code == "P022") << which << ": " << code;
          is_refused = true;
          continue;
        }
        EXPECT_FALSE(is_refused) << which << " is accepted, and half of it is refused";
        EXPECT_GE(*time, before) << which;
        before = *time;
        ++answered;
      }
      EXPECT_TRUE(is_refused && answered > 10) << ladder.target << " " << answered;
    }
  }
}

// Scales all rates of the machine by `factor`.
Machine with_rates(Machine machine, double factor) {
  machine.processor.memory_bandwidth *= factor;
  for (MachineLevel& level : machine.levels) level.bandwidth *= factor;
  for (TransportRate& transport : machine.transports) {
    transport.bandwidth *= factor;
    transport.converting *= factor;
  }
  for (LeafRate& rate : machine.rates) rate.peak *= factor;
  machine.samples.clear();  // times, not rates
  machine.collectives.clear();
  return machine;
}

TEST(Growth, a_slower_machine_is_never_faster) {
  const Machine whole = *load_machine("h200x8x2");
  for (const Ladder& ladder : kLadders) {
    const Request request = request_of(ladder, 1 << 14);
    Picoseconds before = Picoseconds::longest();
    for (double factor = 1e-24; factor < 1e13; factor *= 10) {
      const Checked<Picoseconds> time = time_of(request, with_rates(whole, factor));
      const std::string which = ladder.target + " " + ladder.schedule + " at rates times " +
                                std::to_string(std::log10(factor));
      if (!time.ok()) {
        EXPECT_EQ(time.error().code, DiagCode::M121) << which;
        EXPECT_EQ(before, Picoseconds::longest()) << which << ", and slower ones are told";
        continue;
      }
      EXPECT_LE(*time, before) << which;
      before = *time;
    }
    EXPECT_LT(before, Picoseconds::longest());
  }
}

// Slows one figure at a time: a port, a transport, the memory.
TEST(Growth, a_slower_link_is_never_faster) {
  const Machine whole = *load_machine("h200x8");
  const Request request = request_of(kLadders.front(), 1 << 14);
  for (int which = 0; which < 3; ++which) {
    Picoseconds before = Picoseconds::longest();
    for (double gbs = 1e-12; gbs < 1e13; gbs *= 10) {
      Machine machine = whole;
      const double rate = gbs * 1e9;
      if (which == 0) machine.levels.front().bandwidth = rate;
      if (which == 1) machine.processor.memory_bandwidth = rate;
      for (TransportRate& one : machine.transports) {
        if (which == 2) one.bandwidth = rate;
      }
      const Checked<Picoseconds> time = time_of(request, machine);
      EXPECT_TRUE(time.ok() || time.error().code == DiagCode::M121);
      const Picoseconds told = time.ok() ? *time : Picoseconds::longest();
      EXPECT_LE(told, before) << "figure " << which << ", " << gbs << " GB/s";
      before = told;
    }
    EXPECT_LT(before, from_seconds(1));
  }
}

// Scales rates to the limits of a double.
TEST(Growth, no_rate_breaks_a_prediction) {
  const Machine whole = *load_machine("h200x8x2");
  for (const double factor : {5e-324, 1e-310, 1e-300, 1e-30, 1e30, 1e280}) {
    for (const Ladder& ladder : kLadders) {
      const Machine machine = with_rates(whole, factor);
      if (!check_machine(machine).ok()) continue;  // a figure became 0 or infinite
      const Checked<Picoseconds> time = time_of(request_of(ladder, 1 << 14), machine);
      EXPECT_EQ(time.ok(), factor > 1) << ladder.target << " at rates times " << factor;
      EXPECT_TRUE(time.ok() || time.error().code == DiagCode::M121);
    }
  }
}

// The search treats sizes that take days like others, and refuses times that it cannot represent.
TEST(Growth, searches_of_larger_sizes_find_no_less) {
  const Machine machine = *load_machine("h200x8");
  Session session(false);
  Picoseconds before;
  bool is_refused = false;
  for (const int power : {14, 26, 28, 30, 31, 32, 34, 36}) {
    const Request request = request_of(kLadders.front(), std::int64_t{1} << power);
    const Program program = *session.program(request);
    const Mesh mesh = *session.mesh(request);
    SearchOptions options;
    options.family = "attention";
    options.memory_limit = std::numeric_limits<std::int64_t>::max();
    const Checked<SearchResult> result = search(program, mesh, machine, options);
    if (!result.ok()) {
      EXPECT_NE(render(result.error()).find("the plan takes more than 9223372 s"),
                std::string::npos)
          << render(result.error());
      is_refused = true;
      continue;
    }
    EXPECT_FALSE(is_refused) << power;
    EXPECT_GE(result->top.front().time(), before);
    before = result->top.front().time();
  }
  EXPECT_TRUE(is_refused);
}

TEST(Growth, taxes_of_long_plans_add_up) {
  const Machine machine = *load_machine("h200x8");
  for (const int power : {14, 30, 31, 34}) {
    Session session(false);
    const Checked<FittedPlan> fitted =
        plan_for(session, request_of(kLadders.front(), std::int64_t{1} << power), machine);
    ASSERT_TRUE(fitted.ok());
    const Checked<Taxes> taxes =
        tax(fitted->plan, launches_on(fitted->plan, machine), machine, Launch::Graph);
    ASSERT_EQ(taxes.ok(), power < 32);
    if (!taxes.ok()) continue;
    EXPECT_EQ(taxes->roofline + taxes->launch + taxes->synchronization + taxes->locality +
                  taxes->residual,
              taxes->total);
    EXPECT_GE(taxes->skew_sensitivity, 0);
  }
}

}  // namespace
}  // namespace harpe
