#include "verify/verify.h"

#include <gtest/gtest.h>

#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

TEST(Verify, accepts_a_ring_of_copies) { EXPECT_EQ(finding(RingGemm().hand.plan), "verified"); }

TEST(Verify, accepts_a_tied_state_folded_across_ranks) {
  EXPECT_EQ(finding(SplitDecode().hand.plan), "verified");
}

TEST(Verify, accepts_an_all_gather) { EXPECT_EQ(finding(Gather().hand.plan), "verified"); }

TEST(Verify, accepts_a_reduce_scatter) { EXPECT_EQ(finding(Reduce().hand.plan), "verified"); }

TEST(Verify, accepts_the_identity_where_nothing_contributes) {
  EXPECT_EQ(finding(Masked().hand.plan), "verified");
}

TEST(Verify, certifies_what_it_checked) {
  const Checked<Certificate> certificate = verify(RingGemm().hand.plan);
  ASSERT_TRUE(certificate.ok());
  EXPECT_EQ(certificate->level, VerifyLevel::Full);
  EXPECT_EQ(certificate->tasks, 12);
  EXPECT_EQ(certificate->happens_before_edges, 12);
  EXPECT_EQ(certificate->blocks_checked, 2);
  EXPECT_EQ(certificate->peak_bytes, 5 << 20);
}

TEST(Verify, a_proof_is_given_up_wherever_its_time_ends) {
  const RingGemm ring;
  int asked = 0;
  VerifyOptions options;
  options.limit.interrupted = [&] { return ++asked < 0; };
  ASSERT_TRUE(verify(ring.hand.plan, options).ok());
  const int times = asked;
  // The limit is checked between stages, and at each task of two of them.
  const std::size_t units = ring.hand.plan.tasks.size() + ring.hand.plan.barriers.size();
  EXPECT_EQ(times, static_cast<int>(2 + 2 * units));
  for (int left = 0; left < times; ++left) {
    asked = 0;
    options.limit.interrupted = [&] { return ++asked > left; };
    const Checked<Certificate> certificate = verify(ring.hand.plan, options);
    ASSERT_FALSE(certificate.ok());
    EXPECT_EQ(certificate.error().code, DiagCode::I505);
    EXPECT_EQ(asked, left + 1);
  }
}

TEST(Verify, proves_nothing_of_a_program_that_adds_to_a_value) {
  const RingGemm ring;
  Plan plan = ring.hand.plan;
  Nest again = plan.program.nests.front();
  again.name = "again";
  plan.program.nests.push_back(again);
  const Checked<Certificate> certificate = verify(plan);
  ASSERT_FALSE(certificate.ok());
  EXPECT_EQ(certificate.error().code, DiagCode::P026);
}

TEST(Verify, counts_replicas_of_an_output) {
  const Checked<Certificate> certificate = verify(Gather().hand.plan);
  ASSERT_TRUE(certificate.ok());
  EXPECT_EQ(certificate->blocks_checked, 4);
}

}  // namespace
}  // namespace harpe::test
