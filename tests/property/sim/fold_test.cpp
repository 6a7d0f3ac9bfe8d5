#include "sim/fold.h"

#include <gtest/gtest.h>

#include "tests/property/sim/random_workload.h"

namespace harpe {
namespace {

// All copies in a ring do the same work, so simulating one gives the same time to the picosecond.
TEST(Fold, a_ring_of_copies_takes_as_long_as_one) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto copies = static_cast<std::int64_t>(2 + seed % 6);
    const Workload workload = random_ring(seed, {}, copies);
    const std::optional<Quotient> quotient = fold(workload);
    ASSERT_TRUE(quotient.has_value());
    ASSERT_LE(quotient->workload.activities.size() * static_cast<std::size_t>(copies),
              workload.activities.size());
    const EngineRun whole = run_workload(workload);
    const EngineRun unfolded = unfold(workload, *quotient, run_workload(quotient->workload));
    ASSERT_EQ(unfolded.total, whole.total);
    for (std::size_t i = 0; i < whole.spans.size(); ++i) {
      ASSERT_EQ(unfolded.spans[i].ready, whole.spans[i].ready);
      ASSERT_EQ(unfolded.spans[i].begin, whole.spans[i].begin);
      ASSERT_EQ(unfolded.spans[i].end, whole.spans[i].end);
      if (unfolded.spans[i].cause < 0) continue;
      const auto cause = static_cast<std::size_t>(unfolded.spans[i].cause);
      ASSERT_LE(whole.spans[cause].end, whole.spans[i].ready);
    }
    for (std::size_t r = 0; r < whole.units.size(); ++r) {
      ASSERT_NEAR(unfolded.units[r], whole.units[r], 1e-9 * whole.units[r]);
    }
  }
}

TEST(Fold, what_differs_in_one_place_is_told_apart) {
  Workload workload = random_ring(7, {}, 4);
  Activity& odd = workload.activities[3];
  odd.work += Picoseconds(1);
  const EngineRun whole = run_workload(workload);
  const std::optional<Quotient> quotient = fold(workload);
  if (!quotient) return;
  EXPECT_NE(quotient->class_of[3], quotient->class_of[3 + 30]);
  const EngineRun unfolded = unfold(workload, *quotient, run_workload(quotient->workload));
  EXPECT_EQ(unfolded.total, whole.total);
}

TEST(Fold, what_is_all_different_is_left_alone) {
  EXPECT_FALSE(fold(random_workload(1, {})).has_value());
}

}  // namespace
}  // namespace harpe
