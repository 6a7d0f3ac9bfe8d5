#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/property/launches/described.h"

// Faults against the rules of kernels that begin and end the execution of their rank.
namespace harpe::test {
namespace bounds_faults_test {

using launch::Kernel;
using launch::Launch;
using launch::LaunchPlan;

// Launches of rank 0: 0 is the Entry, 1 the kernel, 2 the Exit. Those of rank 1 are 3 to 5.
Described one_shot() {
  return describe("gemm_ar", {"m=8", "n=8192", "k=8192"}, "tp=2", "one_shot");
}
// Rank 1 sends its rows to rank 0 with a signal.
Described gathered() { return describe("ag_gemm", {"m=16", "n=8192", "k=8192"}, "tp=2", "fused"); }

Launch& bounding(LaunchPlan& m) { return m.launches[1]; }
Kernel& kernel(LaunchPlan& m) { return bounding(m).kernels[0]; }

struct Fault {
  std::string name;
  std::function<void(LaunchPlan&)> plant;
  std::string problem;
};

void expect_found(const Described& base, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    Described d = base;
    fault.plant(d.launches);
    EXPECT_EQ(finding(d),
              "error[V740]: launch 1 of rank 0 cannot bound its epoch: " + fault.problem +
                  "; remove `bounds epoch` from the launch, so that separate kernels begin and end "
                  "executions")
        << fault.name;
  }
}

TEST(BoundsFaults, start_from_what_verifies) {
  for (Described base : {one_shot(), gathered(), describe("decode", {}, "cp=2", "bulk")}) {
    EXPECT_TRUE(bounding(base.launches).bounds_epoch);
    EXPECT_EQ(finding(base), "verified");
  }
}

TEST(BoundsFaults, launches_that_are_not_all_of_an_execution) {
  expect_found(
      one_shot(),
      {
          {"a signal behind the kernel",
           [](LaunchPlan& m) { bounding(m).raises.push_back(m.launches[0].raises[0]); },
           "it waits or raises signals outside of its kernel"},
          {"a signal of another node",
           [](LaunchPlan& m) { m.signals[m.launches[1].awaits[0].index()].is_posted = true; },
           "it, or its rank's Entry or Exit, has signals that are not flags of a page"},
      });
}

// No Exit gives credits, so that thread blocks need not agree that all have ended. Entries signal
// instead.
TEST(BoundsFaults, executions_begin_by_signals_of_entries) {
  for (Described base : {one_shot(), gathered(), describe("decode", {}, "cp=2", "bulk")}) {
    for (const launch::Signal& signal : base.launches.signals) {
      EXPECT_NE(signal.kind, launch::SignalKind::Credit);
    }
    EXPECT_FALSE(base.launches.launches[0].raises.empty());
    EXPECT_FALSE(bounding(base.launches).awaits.empty());
  }
}

// Plans that take turns begin with signals of the current execution.
TEST(BoundsFaults, turns_begin_by_signals_of_this_execution) {
  const Described in_turns =
      describe("gemm_ar", {"m=8", "n=8192", "k=8192"}, "tp=2", "one_shot", {.takes_turns = true});
  EXPECT_FALSE(in_turns.launches.launches[0].raises.empty());
  EXPECT_TRUE(in_turns.launches.launches[1].bounds_epoch);
  EXPECT_EQ(finding(in_turns), "verified");
}

// Other ranks store their totals here, and the Exit waits for them.
TEST(BoundsFaults, exits_that_wait) {
  const Described totals = describe("gemm_ar", {"m=1024", "n=8192", "k=8192"}, "tp=2", "push");
  EXPECT_TRUE(totals.launches.launches[1].bounds_epoch);
  EXPECT_FALSE(totals.launches.launches[2].awaits.empty());
  EXPECT_EQ(finding(totals), "verified");
  expect_found(totals,
               {{"a signal of another node",
                 [](LaunchPlan& m) { m.signals[m.launches[2].awaits[0].index()].is_posted = true; },
                 "it, or its rank's Entry or Exit, has signals that are not flags of a page"},
                {"the beginning of another launch",
                 [](LaunchPlan& m) { m.launches[2].begun.push_back(launch::LaunchId(0)); },
                 "the Exit of its rank waits for more than signals"}});
}

// A norm follows the kernel, which ends the epoch because the Exit only would do that.
TEST(BoundsFaults, kernels_behind_it) {
  const Described normed =
      describe("gemm_ar_norm", {"m=8", "n=8192", "k=8192"}, "tp=2", "one_shot");
  EXPECT_TRUE(normed.launches.launches[1].bounds_epoch);
  EXPECT_EQ(finding(normed), "verified");
  const std::string follows =
      "another launch of its rank does not follow it in its queue, raises signals or waits inside";
  expect_found(
      normed,
      {{"ends before the Exit raises",
        [](LaunchPlan& m) { m.launches[3].raises.push_back(m.launches[0].raises[0]); },
        "other launches of its rank come before an Exit that awaits or raises signals"},
       {"in another queue", [](LaunchPlan& m) { m.launches[2].queue = m.launches[0].queue; },
        follows},
       {"with a signal of this epoch",
        [](LaunchPlan& m) { m.launches[2].raises.push_back(m.launches[0].raises[0]); }, follows}});
}

// Other ranks store their totals here, and the norm waits for them.
TEST(BoundsFaults, kernels_behind_it_that_wait) {
  const Described normed = describe("gemm_ar_norm", {"m=1024", "n=8192", "k=8192"}, "tp=2", "push");
  EXPECT_TRUE(normed.launches.launches[1].bounds_epoch);
  EXPECT_FALSE(normed.launches.launches[2].awaits.empty());
  EXPECT_EQ(finding(normed), "verified");
}

TEST(BoundsFaults, launches_of_two_kernels) {
  expect_found(gathered(),
               {{"twice", [](LaunchPlan& m) { bounding(m).kernels.push_back(kernel(m)); },
                 "it has not one kernel, which can do so"}});
}

TEST(BoundsFaults, reads_before_the_beginning) {
  expect_found(one_shot(),
               {{"rows that a task writes",
                 [](LaunchPlan& m) {
                   kernel(m).arrivals[0].reads[0].alloc = kernel(m).panels[1].stores[0].alloc;
                 },
                 "it reads `mm.c.in0.from0.0`, which is no input of its rank, without a signal"},
                {"weights of another rank",
                 [](LaunchPlan& m) {
                   kernel(m).arrivals[0].reads[1].alloc =
                       m.launches[4].kernels[0].arrivals[0].reads[1].alloc;
                 },
                 "it reads `b.home`, which is no input of its rank, without a signal"}});
  expect_found(gathered(),
               {{"rows of others without their signal",
                 [](LaunchPlan& m) { kernel(m).arrivals[1].when.reset(); },
                 "it reads `mm.a.st0.0`, which is no input of its rank, without a signal"}});
}

}  // namespace bounds_faults_test
}  // namespace harpe::test
