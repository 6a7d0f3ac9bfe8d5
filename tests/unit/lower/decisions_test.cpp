// How the lowering differs from the executable model (docs/lowering.md), one test per difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/lower/fixture.h"

namespace harpe::test {
namespace decisions_test {

constexpr const char* kRing =
    "  split Sq = q0:4 * q1:_\n  split Skv = k0:4 * k1:_\n"
    "  place q[q0@x]\n  place k[k0@x]\n  place v[k0@x]\n  place o[q0@x]\n  place l[q0@x]\n"
    "  nest fwd {\n    par q0 on x\n    for k0 skew x\n"
    "    stage k over x relay by src depth 2\n    stage v over x relay by src depth 2\n    leaf\n  "
    "}\n";

TEST(Decisions, slots_are_memory_so_a_relay_returns_credits) {
  const LowerOptions model{.space_time_only = true, .after_stage = {}};
  // Six steps share two slots, whereas the model assumes six places.
  const std::string body =
      "  split M = m0:6 * m1:_\n  split N = n0:6 * n1:_\n"
      "  place a[m0@x]\n  place b[n0@x]\n  place c[n0@x]\n"
      "  nest mm {\n    par n0 on x\n    for m0 skew x\n    stage a over x relay by src depth 2\n"
      "    leaf\n  }\n";
  const Plan slots = expect_plan(gemm(48, 48, 8, "x:6", body));
  const Plan places = expect_plan(gemm(48, 48, 8, "x:6", body), model);
  EXPECT_EQ(count(slots, TaskKind::Copy), count(places, TaskKind::Copy));
  EXPECT_GT(slots.syncs.size(), places.syncs.size());
}

// Each rank's block has two parts, each with its own copy, signal and total.
TEST(Decisions, a_drain_that_is_cut_ends_in_totals_of_its_parts) {
  const auto scattered = [](const std::string& cut) {
    return expect_plan(gemm(8, 4, 4, "x:2",
                            "  split M = m0:2 * m1:2 * m2:_\n  split K = k0:2 * k1:_\n"
                            "  place a[k0@x]\n  place b[k0@x]\n  place c[m0@x]\n"
                            "  nest mm {\n    par k0 on x\n    drain c over x direct by src " +
                                cut + "via sm signal flag\n    leaf\n  }\n"));
  };
  const Plan whole = scattered("");
  const Plan parts = scattered("grain m1 ");
  EXPECT_EQ(count(whole, TaskKind::Finalise), 2);
  EXPECT_EQ(count(parts, TaskKind::Finalise), 4);
  for (std::size_t i = 0; i < parts.tasks.size(); ++i) {
    if (parts.tasks[i].kind != TaskKind::Finalise) continue;
    const TaskId total(static_cast<std::int64_t>(i));
    EXPECT_EQ(std::ranges::count(parts.syncs, total, &Sync::to), 1);
  }
  EXPECT_EQ(bytes_crossing(whole), bytes_crossing(parts));
}

TEST(Decisions, empty_blocks_are_neither_sent_nor_computed) {
  // 3 query rows and keys on 4 ranks: the last block of each is empty (D12).
  const Plan plan = expect_plan(attention(3, 3, false, "x:4", kRing));
  EXPECT_EQ(count(plan, TaskKind::Compute), 9);
  EXPECT_EQ(count(plan, TaskKind::Finalise), 3);
}

TEST(Decisions, unread_transfers_of_a_contiguous_causal_ring_are_dropped) {
  const Plan causal = expect_plan(attention(64, 64, true, "x:4", kRing));
  const Plan full = expect_plan(attention(64, 64, false, "x:4", kRing));
  EXPECT_EQ(count(full, TaskKind::Copy), 12);
  EXPECT_EQ(count(causal, TaskKind::Compute), 10);
  EXPECT_LT(bytes_crossing(causal), bytes_crossing(full));
}

TEST(Decisions, key_and_value_travel_in_one_task) {
  const Plan plan = expect_plan(attention(64, 64, false, "x:4", kRing));
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::Copy) {
      EXPECT_EQ(task.writes.size(), 2U);
    }
  }
}

TEST(Decisions, partial_states_never_live_in_homes) {
  const Plan plan = expect_plan(attention(64, 64, false, "x:4", kRing));
  for (const Task& task : plan.tasks) {
    for (const Ref& ref : task.writes) {
      const bool home = plan.allocs[ref.alloc.index()].level == Level::Home;
      EXPECT_TRUE(!home || ref.mode == WriteMode::Set);
    }
  }
  EXPECT_EQ(count(plan, TaskKind::Finalise), 4);
}

constexpr const char* kReplicatedSum =
    "  split K = k0:4 * k1:_\n  place a[k0@x]\n  place b[k0@x]\n  place c[]\n"
    "  nest mm {\n    par k0 on x\n    drain c over x bulk\n    leaf\n  }\n";

TEST(Decisions, a_drain_to_a_replicated_home_scatters_and_gathers) {
  const Plan plan = expect_plan(gemm(32, 16, 64, "x:4", kReplicatedSum));
  // Reduce-scatter + all-gather move 2 * 3/4 of c per rank; a full copy per peer would move 3.
  EXPECT_EQ(bytes_crossing(plan), 4 * 2 * 3 * (32 * 16 * 4 / 4));
  const Split* split = find_split(plan.form, "M");
  ASSERT_NE(split, nullptr) << "a digit to scatter over was added";
  EXPECT_EQ(split->digits.front().extent, 4);
}

TEST(Decisions, the_model_sends_one_full_copy_per_peer) {
  const LowerOptions model{.space_time_only = true, .after_stage = {}};
  const Plan plan = expect_plan(gemm(32, 16, 64, "x:4", kReplicatedSum), model);
  EXPECT_EQ(bytes_crossing(plan), 4 * 3 * (32 * 16 * 4));
}

TEST(Decisions, the_own_contribution_is_folded_first) {
  const Plan plan = expect_plan(gemm(
      32, 16, 64, "x:4",
      "  split M = m0:4 * m1:_\n  split K = k0:4 * k1:_\n  place a[k0@x]\n  place b[k0@x]\n"
      "  place c[m0@x]\n  nest mm {\n    par k0 on x\n    drain c over x bulk\n    leaf\n  }\n"));
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Finalise) continue;
    const RankId owner = plan.queues[task.queue.index()].rank;
    std::vector<std::int64_t> from;
    for (const Ref& ref : task.reads) {
      const Alloc& alloc = plan.allocs[ref.alloc.index()];
      const std::size_t at = alloc.name.find("from");
      const std::int64_t distance = at == std::string::npos ? 0 : alloc.name[at + 4] - '0';
      from.push_back((owner.value + distance) % 4);
    }
    std::vector<std::int64_t> expected = {owner.value};
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      if (rank != owner.value) expected.push_back(rank);
    }
    EXPECT_EQ(from, expected);
  }
}

TEST(Decisions, an_nccl_drain_is_a_reduce_scatter_without_inboxes) {
  const Plan plan = expect_plan(
      gemm(32, 16, 64, "x:4",
           "  split M = m0:4 * m1:_\n  split K = k0:4 * k1:_\n  place a[k0@x]\n  place b[k0@x]\n"
           "  place c[m0@x]\n"
           "  nest mm {\n    par k0 on x\n    drain c over x bulk via nccl\n    leaf\n  }\n"));
  EXPECT_EQ(count(plan, TaskKind::Collective), 4);
  EXPECT_EQ(count(plan, TaskKind::Copy), 0);
  for (const Alloc& alloc : plan.allocs) EXPECT_NE(alloc.level, Level::Inbox) << alloc.name;
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::Collective) {
      EXPECT_EQ(task.collective, CollectiveOp::ReduceScatter);
    }
  }
}

TEST(Decisions, uneven_parts_stay_point_to_point) {
  const Plan plan = expect_plan(
      gemm(33, 16, 64, "x:4",
           "  split M = m0:4 * m1:_\n  split K = k0:4 * k1:_\n  place a[k0@x]\n  place b[k0@x]\n"
           "  place c[m0@x]\n"
           "  nest mm {\n    par k0 on x\n    drain c over x bulk via nccl\n    leaf\n  }\n"));
  EXPECT_EQ(count(plan, TaskKind::Collective), 0);
  EXPECT_EQ(count(plan, TaskKind::Copy), 12);
}

TEST(Decisions, strided_parts_are_packed_for_nccl_only) {
  const auto plan = [](const std::string& via) {
    return expect_plan(gemm(32, 16, 64, "x:4",
                            "  split N = n0:4 * n1:_\n  split K = k0:4 * k1:_\n  place a[k0@x]\n"
                            "  place b[k0@x]\n  place c[n0@x]\n"
                            "  nest mm {\n    par k0 on x\n    drain c over x bulk via " +
                                via + "\n    leaf\n  }\n"));
  };
  EXPECT_EQ(count(plan("nccl"), TaskKind::Pack), 12) << "columns of c are strided";
  EXPECT_EQ(count(plan("ce"), TaskKind::Pack), 0);
}

TEST(Decisions, blocks_without_contributions_are_initialised) {
  // 8 keys for 32 queries, bottom-right causal: the first 24 queries see nothing (D16).
  const Plan plan = expect_plan(attention(32, 8, true, "x:4", kRing));
  EXPECT_EQ(count(plan, TaskKind::Init), 3);
}

TEST(Decisions, an_lse_state_moves_together) {
  const std::string untied =
      "  split Sq = q0:2 * q1:_\n  split Skv = k0:2 * k1:_\n"
      "  place q[]\n  place k[k0@x]\n  place v[k0@x]\n  place o[q0@x]\n  place l[q0@x]\n"
      "  nest fwd {\n    par k0 on x\n    drain o over x bulk\n    drain l over x bulk depth 2\n"
      "    leaf\n  }\n";
  const LowerOptions model{.space_time_only = true, .after_stage = {}};
  EXPECT_EQ(
      refusal(attention(16, 16, false, "x:2", untied)),
      "error[F219]: outputs `o` and `l` are one `lse` state, but their drains differ; give both "
      "the same placement and the same drains");
  EXPECT_EQ(refusal(attention(16, 16, false, "x:2", untied), model), "accepted");
}

TEST(Decisions, data_still_in_a_slot_is_not_sent_again) {
  // K and V are staged inside the query loop, but their slots still hold them in the second step.
  const std::string body =
      "  split Sq = q0:2 * q1:_\n  split Skv = k0:2 * k1:_\n"
      "  place q[]\n  place k[k0@x]\n  place v[k0@x]\n  place o[]\n  place l[]\n"
      "  nest fwd {\n    for q0\n    stage k over x bulk\n    stage v over x bulk\n    leaf\n  }\n";
  const LowerOptions model{.space_time_only = true, .after_stage = {}};
  EXPECT_EQ(count(expect_plan(attention(16, 16, false, "x:2", body), model), TaskKind::Copy), 16);
  const Plan plan = expect_plan(attention(16, 16, false, "x:2", body));
  EXPECT_EQ(bytes_crossing(plan), 2 * 2 * (8 * 4 * 8 * 4))
      << "each rank fetches half of k and v once";
}

TEST(Decisions, all_to_all_boundaries_become_barriers) {
  const Plan plan = expect_plan(
      gemm(64, 64, 8, "x:8",
           "  split M = m0:8 * m1:_\n  split N = n0:8 * n1:_\n  place a[m0@x]\n  place b[n0@x]\n"
           "  place c[n0@x]\n"
           "  nest mm {\n    par n0 on x\n    for m0 skew x\n    stage a over x direct depth 2\n"
           "    leaf\n  }\n"));
  ASSERT_EQ(plan.barriers.size(), 2U);
  EXPECT_EQ(plan.barriers[0].from.size(), 8U);
  EXPECT_EQ(plan.barriers[1].to.size(), 8U);
}

constexpr const char* kInline =
    "  split K = k0:2 * k1:_\n  split M = m0:2 * m1:_\n  place a[k0@x]\n  place b[k0@x]\n"
    "  place c[m0@x]\n  nest mm {\n    par k0 on x\n    for m0 skew x\n"
    "    drain c over x inline via sm\n    leaf\n  }\n";

TEST(Decisions, an_inline_drain_adds_in_the_owners_memory) {
  const Plan plan = expect_plan(gemm(16, 16, 16, "x:2", kInline));
  EXPECT_EQ(count(plan, TaskKind::Copy), 0);
  int remote = 0;
  for (const Task& task : plan.tasks) {
    for (const Ref& ref : task.writes) {
      const bool own = plan.allocs[ref.alloc.index()].rank == plan.queues[task.queue.index()].rank;
      remote += own ? 0 : 1;
    }
  }
  EXPECT_EQ(remote, 2);
}

constexpr const char* kOpen =
    "  split K = k0:2 * k1:_\n  place a[k0@x]\n  place b[k0@x]\n  place c[] partial sum@x\n"
    "  nest mm {\n    par k0 on x\n    leaf\n  }\n";

TEST(Decisions, a_partial_home_leaves_the_sum_open) {
  const Plan plan = expect_plan(gemm(16, 16, 16, "x:2", kOpen));
  EXPECT_EQ(count(plan, TaskKind::Copy), 0);
  EXPECT_EQ(count(plan, TaskKind::Finalise), 2);
}

constexpr const char* kPush =
    "  split M = m0:3 * m1:_\n  split N = n0:3 * n1:_\n  place a[m0@x]\n  place b[n0@x]\n"
    "  place c[n0@x]\n  nest mm {\n    par n0 on x\n    for m0 skew x\n"
    "    stage a over x direct by src depth 3 via proxy signal flag";

// Puts of one queue may arrive in any order: a reader of two puts to two ranks waits for both.
TEST(Decisions, signals_behind_puts_state_their_fence) {
  for (const auto& [text, fence] :
       {std::pair(" fence dest", Fence::PerDestination), std::pair(" fence nic", Fence::NicOrdered),
        std::pair(" fence batch", Fence::Batched), std::pair(" fence epoch", Fence::OneQuiet),
        std::pair(" fence imm", Fence::Immediate), std::pair("", Fence::PerPut)}) {
    const Plan plan =
        expect_plan(gemm(12, 12, 8, "x:3", kPush + std::string(text) + "\n    leaf\n  }\n"));
    int words = 0;
    for (const Sync& sync : plan.syncs) {
      const bool behind_put =
          is_put(plan, plan.tasks[sync.from.index()]) && sync.kind != SyncKind::Event;
      EXPECT_EQ(sync.fence.has_value(), behind_put);
      if (!behind_put) continue;
      EXPECT_EQ(*sync.fence, fence);
      ++words;
    }
    EXPECT_EQ(words, 6);
  }
}

TEST(Decisions, a_fusion_of_fusions_is_one_launch) {
  const Source source{.program =
                          "program three {\n  axis M = 8\n  buffer x : f32[M] in\n"
                          "  buffer y : f32[M] temp\n  buffer z : f32[M] temp\n"
                          "  buffer w : f32[M] out\n"
                          "  nest one over (M) {\n    y = copy(x)\n  }\n"
                          "  nest two over (M) {\n    z = copy(y)\n  }\n"
                          "  nest last over (M) {\n    w = copy(z)\n  }\n}\n",
                      .mesh = "mesh m = x:1\n",
                      .form =
                          "commir f for three on m {\n  nest one {\n    leaf\n  }\n"
                          "  nest two {\n    leaf\n  }\n  nest last {\n    leaf\n  }\n"
                          "  fuse inner = two, last\n"
                          "  fuse all = one, inner persistent\n}\n"};
  const Plan plan = expect_plan(source);
  std::set<std::int32_t> kernels;
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::Compute) kernels.insert(task.kernel);
  }
  EXPECT_EQ(kernels.size(), 1U);
}

}  // namespace decisions_test
}  // namespace harpe::test
