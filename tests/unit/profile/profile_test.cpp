#include "profile/profile.h"

#include <gtest/gtest.h>

#include <set>

#include "machine/rates.h"
#include "profile/profile_crew.h"

namespace harpe {
namespace {

TEST(Profile, measures_a_machine_that_reads_back_and_keeps_its_bounds) {
  std::set<std::string> stages;
  const Machine machine = profile_cpu(
      {.ranks = 2, .quick = true, .progress = [&](std::string_view s) { stages.emplace(s); }});
  const Checked<Machine> again = parse_machine(print(machine), "cpu.machine");
  ASSERT_TRUE(again.ok()) << render(again.error());
  EXPECT_EQ(*again, machine);
  EXPECT_EQ(machine.name, "cpu");
  EXPECT_EQ(machine.processors(), 2);
  EXPECT_EQ(machine.processor.from.origin, Origin::Measured);
  EXPECT_GE(stages.size(), 6U);
  std::set<std::string> leaves;
  for (const LeafSample& sample : machine.samples) {
    leaves.insert(sample.leaf + " " + sample.dtype);
    EXPECT_EQ(leaf_time(machine, sample.leaf, sample.dtype, sample.shape, sample.causal),
              sample.time);
  }
  EXPECT_EQ(leaves, (std::set<std::string>{"matmul f32", "matmul bf16", "attn_fwd f32",
                                           "attn_fwd bf16", "attn_bwd f32", "attn_bwd bf16"}));
  // A 64^3 GEMM has half a megaflop: every core takes between a nanosecond and a second.
  const LeafShape shape{.rows = 64, .columns = 64, .depth = 64, .flops = 524288, .bytes = 49152};
  const double us = leaf_time(machine, "matmul", "f32", shape, false).microseconds();
  EXPECT_GT(us, 0.01);
  EXPECT_LT(us, 1e5);
}

TEST(Profile, ranks_that_work_at_once_take_as_long_as_what_they_do) {
  ProfileCrew crew{.ranks = 2, .cores = 2};
  crew.budget = std::chrono::milliseconds(5);
  const double seconds = crew.seconds_per_call([](std::int64_t) -> ProfileBody {
    return [] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(500);
      while (std::chrono::steady_clock::now() < end) {
      }
    };
  });
  EXPECT_GE(seconds, 500e-6);
  EXPECT_LT(seconds, 50e-3);
  EXPECT_GT(seconds_per_signal(std::chrono::milliseconds(5)), 1e-9);
}

}  // namespace
}  // namespace harpe
