#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/property/launches/described.h"
#include "tests/support/linear.h"

// One fault against each rule for launch plans that goes beyond the rules for plans.
namespace harpe::test {
namespace {

using launch::Kernel;
using launch::Launch;
using launch::LaunchPlan;

Described push() { return describe("ag_gemm", {"m=1024", "n=512", "k=512"}, "tp=2", "push"); }
Described fused() { return describe("ag_gemm", {"m=1024", "n=512", "k=512"}, "tp=2", "fused"); }
Described scatter() { return describe("gemm_rs", {"m=1024", "n=512", "k=1024"}, "tp=4", "push"); }
Described fetch() { return describe("ag_gemm", {"m=1024", "n=512", "k=512"}, "tp=2", "fetch"); }

Described linear(const std::string& state) {
  return describe(ask({.op = "ag_gemm", .schedule = "push", .state = state}, "tp=2"));
}

// Half of the columns begin at an address that the tensor-core kernel cannot read; a plain kernel
// computes them.
Described with_rest() { return describe("gemm", {"m=64", "n=48", "k=96"}, "x=4", "hierarchical"); }
constexpr std::size_t kWithRest = 4;  // the launch of `with_rest`

TEST(PlantedFaults, start_from_what_verifies) {
  EXPECT_EQ(finding(linear("f32")), "verified");
  EXPECT_EQ(finding(linear("bf16")), "verified");

  EXPECT_EQ(finding(push()), "verified");
  EXPECT_EQ(finding(fused()), "verified");
  EXPECT_EQ(finding(scatter()), "verified");
  EXPECT_EQ(finding(with_rest()), "verified");
  EXPECT_EQ(finding(fetch()), "verified");
}

// The engine may belong to the other GPU and wait behind launches of that GPU's rank.
TEST(PlantedFaults, an_engine_that_reads_what_lies_on_another_rank) {
  Described d = fetch();
  const auto moves = [](const Launch& each) {
    return !each.kernels.empty() && each.kernels.front().name == "move";
  };
  const auto found = std::ranges::find_if(d.launches.launches, moves);
  ASSERT_NE(found, d.launches.launches.end());
  found->kernels.front().name = "copy_engine";
  EXPECT_EQ(finding(d),
            "error[V704]: `copy_engine` of launch 1 on rank 0 is to read what lies on another "
            "rank");
}

TEST(PlantedFaults, a_rest_that_nothing_does) {
  Described d = with_rest();
  ASSERT_EQ(d.launches.launches[kWithRest].kernels[1].name, "gemm");
  d.launches.launches[kWithRest].kernels.pop_back();
  EXPECT_EQ(finding(d),
            "error[V501]: task 28 (finalise mm.0 on rank 0) in launch 6 reads `c` [s0=0, "
            "s1=0, t0=1, t1=0] in `mm.c.acc0` of rank 0, where no task has stored it");
}

TEST(PlantedFaults, a_rest_that_is_done_twice) {
  Described d = with_rest();
  std::vector<Kernel>& kernels = d.launches.launches[kWithRest].kernels;
  kernels.push_back(Kernel(kernels[1]));
  EXPECT_EQ(finding(d), "error[V704]: `gemm` of launch 4 on rank 0 does what kernel 1 does");
}

TEST(PlantedFaults, a_rest_of_other_columns) {
  Described d = with_rest();
  Kernel& rest = d.launches.launches[kWithRest].kernels[1];
  rest.panels[0].stores[0].span[1] = {.begin = 12, .end = 24};
  rest.arrivals[0].reads[1].span[1] = {.begin = 12, .end = 24};
  EXPECT_EQ(finding(d),
            "error[V404]: panel 0 of launch 4, kernel 1 reads `b` [t0=0, t1=1] in "
            "`mm.b.st0.0` of rank 0, and nothing orders it after task 21 (copy on rank 0) in "
            "launch 7, which uses the slot for `b` [t0=0, t1=0]");
}

TEST(PlantedFaults, a_rest_that_is_stored_elsewhere) {
  Described d = with_rest();
  d.launches.launches[kWithRest].kernels[1].panels[0].stores[0].span[1] = {.begin = 36, .end = 48};
  EXPECT_EQ(finding(d),
            "error[V704]: `gemm` of launch 4 on rank 0 meets operands that make nothing of "
            "what it stores");
}

TEST(PlantedFaults, a_rest_that_is_not_stated) {
  Described d = with_rest();
  Kernel& rest = d.launches.launches[kWithRest].kernels[1];
  rest.arrivals.clear();
  rest.panels.clear();
  EXPECT_EQ(finding(d), "error[V704]: `gemm` of launch 4 on rank 0 does not state its panels");
}

TEST(PlantedFaults, a_rest_that_waits_inside) {
  Described d = with_rest();
  d.launches.launches[kWithRest].kernels[1].arrivals[0].when = launch::SignalId(1);
  EXPECT_EQ(finding(d),
            "error[V704]: `gemm` of launch 4 on rank 0 waits or raises inside, which it "
            "cannot");
}

// A credit shows that the last execution has ended, not that the rank has begun this one.
TEST(PlantedFaults, credits_where_plans_take_turns) {
  Described d = push();
  d.launches.target += " turns";
  EXPECT_EQ(finding(d),
            "error[V405]: task 5 (copy on rank 0) in launch 2 touches `mm.a.st0.0` of rank 1, and "
            "nothing orders it after task 1 (entry on rank 1) in launch 5");
}

TEST(PlantedFaults, a_task_that_no_launch_does) {
  Described d = push();
  std::erase(d.launches.launches[3].does, TaskId(10));
  EXPECT_EQ(finding(d),
            "error[V701]: task 10 (finalise mm.0 on rank 0) is done by no launch; each task is "
            "done by one launch");
}

TEST(PlantedFaults, a_signal_in_the_page_of_another_rank) {
  Described d = push();
  d.launches.launches[4].awaits = {launch::SignalId(4)};
  EXPECT_EQ(finding(d),
            "error[V702]: launch 4 on rank 0 awaits signal 4, which is in the page of rank 1");
}

TEST(PlantedFaults, a_signal_one_arrival_short) {
  Described d = fused();
  d.launches.signals[3].arrivals = 7;
  EXPECT_EQ(finding(d), "error[V703]: signal 3 (sync 8) expects 7 in an execution and is given 8");
}

TEST(PlantedFaults, a_panel_that_meets_what_is_not_there) {
  Described d = push();
  d.launches.launches[3].kernels[0].panels[1].meets = {2};
  EXPECT_EQ(finding(d),
            "error[V704]: `gemm_sm90` of launch 3 on rank 0 meets arrival 2, which it has not");
}

TEST(PlantedFaults, a_place_beyond_its_buffer) {
  Described d = push();
  d.launches.launches[3].kernels[0].panels[1].stores[0].span[0] = {.begin = 512, .end = 2048};
  EXPECT_EQ(finding(d),
            "error[V705]: `gemm_sm90` of launch 3 on rank 0 names a place in `c.home` of rank "
            "0, and cuts a block or leaves the buffer");
}

TEST(PlantedFaults, a_copy_that_nothing_makes) {
  Described d = push();
  d.launches.launches[2].kernels.clear();
  EXPECT_EQ(finding(d),
            "error[V706]: no kernel of launch 2 on rank 0 does task 5 (copy on rank 0)");
}

TEST(PlantedFaults, a_copy_that_is_skipped_though_it_is_read) {
  Described d = push();
  Launch& copy = d.launches.launches[2];
  copy.kernels.clear();
  copy.is_skipped = true;
  EXPECT_EQ(finding(d),
            "error[V501]: panel 1 of launch 8 reads `a` [m0=0] in `mm.a.st0.0` of rank 1, "
            "where no task has stored it");
}

TEST(PlantedFaults, a_panel_that_is_stored_at_a_peer_before_its_entry) {
  Described d = scatter();
  std::erase(d.launches.launches[1].awaits, launch::SignalId(3));
  EXPECT_EQ(finding(d),
            "error[V402]: panel 0 of launch 1 in the next execution overwrites `c` [m0=1] in "
            "`mm.c.in0.from3.0` of rank 1, and nothing orders it after panel 3 of launch 4, "
            "which reads it");
}

TEST(PlantedFaults, a_store_past_a_second_reader) {
  Described d = describe("attention", {"seq=1024"}, "cp=4", "ring");
  // The neighbour's attention signals when it has read the keys that would be overwritten.
  const auto says_free = [&](launch::SignalId signal) {
    const TaskId from = d.launches.signals[signal.index()].from.front();
    return d.plan.tasks[from.index()].kind == TaskKind::Compute;
  };
  for (Launch& each : d.launches.launches) std::erase_if(each.awaits, says_free);
  EXPECT_EQ(finding(d),
            "error[V404]: panel 0 of launch 5 reads `k` [k0=1] in `fwd.k.st0.1` of rank 0, and "
            "nothing orders it after task 24 (copy on rank 1) in launch 12, which uses the "
            "slot for `k` [k0=3]");
}

TEST(PlantedFaults, lengths_that_are_not_read) {
  Described d = describe("decode", {"ragged=true"}, "tp=2", "bulk");
  EXPECT_EQ(finding(d), "verified");
  d.launches.launches[1].kernels[0].panels[0].reads.pop_back();
  EXPECT_EQ(finding(d),
            "error[V502]: panel 0 of launch 1 computes iteration [h0=1, k0=0] and does not read "
            "`lengths`");
}

TEST(PlantedFaults, a_missing_addend) {
  Described d = scatter();
  d.launches.launches[1].kernels[0].panels[3].addends.pop_back();
  EXPECT_EQ(finding(d),
            "error[V520]: output `c` [m0=0] at rank 0 lacks 1 of 4 contributions: iteration "
            "[m0=0, k0=3]");
}

TEST(PlantedFaults, totals_before_departures) {
  Described d = scatter();
  for (Launch& each : d.launches.launches) {
    for (Kernel& kernel : each.kernels) std::ranges::reverse(kernel.panels);
  }
  EXPECT_EQ(finding(d),
            "error[V711]: launch 1 on rank 0 cannot finish with few thread blocks: "
            "panel 0 of launch 1 waits for panel 1 of launch 4, which waits for panel 0 of "
            "launch 4, which waits for panel 3 of launch 1, which waits for panel 2 of launch "
            "1, which waits for panel 1 of launch 1, which waits for panel 0 of launch 1, "
            "which waits for the first; put panels that wait behind the panels that they wait for");
}

TEST(PlantedFaults, kernels_that_wait_inside_and_leave_no_sm_to_what_they_wait_for) {
  Described d = push();
  for (Launch& each : d.launches.launches) {
    each.reserved_sms = 0;
    each.raised_by_engine = false;
  }
  EXPECT_EQ(finding(d),
            "error[V710]: launch 8 on rank 1 may hold 132 of 132 SMs while it waits inside, "
            "and launch 7, which needs one, must run first: launch 8 on the SMs waits for task "
            "5 (copy on rank 0) in launch 2, which waits for launch 3 on the SMs, which waits "
            "for task 4 (copy on rank 1) in launch 7, which waits for the first; reserve SMs, "
            "or begin the kernel later");
}

// If plans take turns, copies wait for other ranks' entries in kernels of one warp.
TEST(PlantedFaults, a_kernel_that_keeps_a_copy_from_beginning) {
  Described d =
      describe("ag_gemm", {"m=1024", "n=512", "k=512"}, "tp=2", "push", {.takes_turns = true});
  Launch& kernel = d.launches.launches[8];
  ASSERT_EQ(kernel.begun.size(), 1U);
  EXPECT_EQ(kernel.reserved_sms, 0);
  EXPECT_EQ(finding(d), "verified");
  kernel.begun.clear();
  d.launches.launches[3].begun.clear();
  EXPECT_EQ(finding(d),
            "error[V710]: launch 8 on rank 1 may hold 132 of 132 SMs while it waits inside, "
            "and launch 7, which needs one, must run first: launch 8 on the SMs waits for task "
            "5 (copy on rank 0) in launch 2, which waits for launch 3 on the SMs, which waits "
            "for task 4 (copy on rank 1) in launch 7, which waits for the first; reserve SMs, "
            "or begin the kernel later");
}

TEST(PlantedFaults, a_kernel_that_waits_inside_on_a_gpu_that_ranks_share) {
  Described d = push();
  d.launches.target += " shared";
  EXPECT_EQ(finding(d),
            "error[V710]: launch 3 on rank 0 may hold 132 of 132 SMs while it waits inside, "
            "and what other ranks launch on its GPU, which needs some of them, must run first: "
            "ranks share GPUs in `h200 sms 132 shared`; reserve SMs, or begin the kernel later");
}

TEST(PlantedFaults, nccl_beside_a_kernel_that_waits_inside_and_leaves_it_a_few_sms) {
  Described d = push();
  for (Launch& each : d.launches.launches) {
    each.raised_by_engine = false;
    each.reserved_sms = 2;
    for (Kernel& kernel : each.kernels) {
      if (kernel.name == "copy_engine") kernel.name = "nccl";
    }
  }
  EXPECT_EQ(finding(d),
            "error[V710]: launch 8 on rank 1 may hold 130 of 132 SMs while it waits inside, "
            "and launch 7, which needs as many as NCCL takes, must run first: launch 8 on the SMs "
            "waits for task 5 (copy on rank 0) in launch 2, which waits for launch 3 on the SMs, "
            "which waits for task 4 (copy on rank 1) in launch 7, which waits for the first; "
            "reserve SMs, or begin the kernel later");
}

TEST(PlantedFaults, a_kernel_that_reserves_every_sm) {
  Described d = push();
  d.launches.launches[3].reserved_sms = 132;
  EXPECT_EQ(finding(d),
            "error[V712]: launch 3 on rank 0 uses 132 of 132 SMs as reserved SMs and for "
            "copies, which leaves none for panels");
}

TEST(PlantedFaults, a_counter_that_runs_ahead) {
  Described d = describe("ag_gemm", {"m=1024", "n=512", "k=512"}, "tp=2", "bulk");
  for (Launch& each : d.launches.launches) {
    each.awaits.clear();
    each.all_pulled.reset();
    each.all_ready.reset();
  }
  EXPECT_EQ(finding(d),
            "error[V707]: the beginning of launch 1 in the next execution may add to signal 0 "
            "(arrival) before the beginning of launch 5 has added to it in the previous execution");
}

TEST(PlantedFaults, a_queue_that_begins_before_the_entry) {
  Described d = push();
  d.launches.launches[1].after.clear();
  EXPECT_EQ(
      finding(d),
      "error[V709]: nothing orders the beginning of launch 1 after task 0 (entry on rank 0) in "
      "launch 0; wait for the launch that begins the epoch (`after`)");
}

TEST(PlantedFaults, homes_left_in_16_bits) {
  Described d = push();
  d.launches.partials16.push_back(d.launches.launches[3].kernels[0].panels[0].stores[0].alloc);
  EXPECT_EQ(finding(d),
            "error[V708]: `c.home` of rank 0 cannot be left in 16 bits: it holds no partial "
            "states of f32");
}

// Rounds after every step of the ring, whereas the plan rounds once.
TEST(PlantedFaults, a_narrow_state_that_is_carried_on) {
  Described d = describe("attention", {"seq=1024"}, "cp=2", "ring");
  for (std::size_t id = 0; id < d.plan.allocs.size(); ++id) {
    const AllocId alloc(static_cast<std::int64_t>(id));
    if (d.plan.allocs[id].name != "fwd.o.acc0") continue;
    d.launches.partials16.push_back(alloc);
    for (Launch& each : d.launches.launches) {
      for (Kernel& kernel : each.kernels) {
        for (launch::Panel& panel : kernel.panels) {
          if (panel.stores.front().alloc == alloc) panel.dtype = DType::BF16;
        }
      }
    }
  }
  EXPECT_EQ(finding(d),
            "error[V720]: output `o` [q0=0] at rank 0: iteration [q0=0, k0=0] is rounded to "
            "bf16, bf16 on its way, and the plan rounds it to bf16");
}

TEST(PlantedFaults, addends_in_another_order) {
  Described d = scatter();
  auto& addends = d.launches.launches[1].kernels[0].panels[3].addends;
  std::swap(addends[0], addends[1]);
  EXPECT_EQ(finding(d),
            "error[V721]: output `c` [m0=0] at rank 0 is added in another order than the "
            "plan's: iteration [m0=0, k0=0], iteration [m0=0, k0=2], iteration [m0=0, k0=1], "
            "iteration [m0=0, k0=3], and the plan iteration [m0=0, k0=0], iteration [m0=0, "
            "k0=1], iteration [m0=0, k0=2], iteration [m0=0, k0=3]");
}

TEST(PlantedFaults, a_panel_stored_in_another_type) {
  Described d = push();
  d.launches.launches[3].kernels[0].panels[0].dtype = DType::F32;
  EXPECT_EQ(finding(d),
            "error[V722]: panel 0 of launch 3 on rank 0 is stored as f32 in `c.home`, which "
            "holds bf16");
}

}  // namespace
}  // namespace harpe::test
