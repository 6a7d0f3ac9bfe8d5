#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compile/session.h"
#include "compile/summary.h"

// The figures of `harpe lower` against formulas: P ranks, s positions on each, Hq and Hk heads of d
// numbers of e bytes; partial states are f32.
namespace harpe {
namespace {

constexpr std::int64_t kRanks = 8, kPositions = 1024, kHeads = 32, kKvHeads = 8, kDim = 128;
constexpr std::int64_t kBytes = 2, kState = 4;

constexpr std::int64_t kQuery = kPositions * kHeads * kDim * kBytes;        // q or o of one rank
constexpr std::int64_t kCache = kPositions * 2 * kKvHeads * kDim * kBytes;  // k and v of one rank
constexpr std::int64_t kLse = kPositions * kHeads * kState;
constexpr std::int64_t kOutputState = kPositions * kHeads * kDim * kState + kLse;
constexpr std::int64_t kHomes = 2 * kQuery + kCache + kLse;

PlanSummary lowered(const std::string& schedule, const std::string& mesh) {
  Session session(false);
  const Checked<Plan> plan = session.plan(
      {.target = "attention",
       .parameters = {"seq=" + std::to_string(kRanks * kPositions),
                      "heads=" + std::to_string(kHeads), "kv_heads=" + std::to_string(kKvHeads),
                      "head_dim=" + std::to_string(kDim)},
       .mesh = mesh,
       .schedule = schedule});
  EXPECT_TRUE(plan.ok()) << render(plan.error());
  return summarise(*plan);
}

TEST(ClosedForms, whatever_rings_and_gathers_do_every_block_of_k_and_v_reaches_every_rank_once) {
  for (const char* schedule : {"ring", "allgather", "hybrid", "double_ring"}) {
    EXPECT_EQ(lowered(schedule, "cp=8").bytes_moved, kRanks * (kRanks - 1) * kCache) << schedule;
  }
}

TEST(ClosedForms, ulysses_exchanges_all_but_one_share_of_everything) {
  EXPECT_EQ(lowered("ulysses", "cp=8").bytes_moved,
            (kRanks - 1) * (2 * kQuery + kCache + kLse));  // P ranks send (P - 1) / P of each
}

TEST(ClosedForms, usp_exchanges_inside_and_rings_outside) {
  for (const std::int64_t heads : {2, 4}) {
    const std::int64_t ring = kRanks / heads;
    const std::string mesh = "a=" + std::to_string(ring) + ",b=" + std::to_string(heads);
    EXPECT_EQ(lowered("usp", mesh).bytes_moved,
              kRanks * ((heads - 1) * (2 * kQuery + kCache + kLse) / heads + (ring - 1) * kCache))
        << mesh;
  }
}

TEST(ClosedForms, a_rotation_of_q_takes_the_state_along_and_home) {
  EXPECT_EQ(lowered("q_rotation", "cp=8").bytes_moved,
            kRanks * ((kRanks - 1) * kQuery + kRanks * kOutputState));
}

TEST(ClosedForms, a_ring_holds_two_blocks_and_a_gather_all_of_them) {
  EXPECT_EQ(lowered("ring", "cp=8").memory_bytes, kHomes + kOutputState + 2 * kCache);
  EXPECT_EQ(lowered("allgather", "cp=8").memory_bytes, kHomes + kOutputState + kRanks * kCache);
}

}  // namespace
}  // namespace harpe
