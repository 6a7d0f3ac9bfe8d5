#include "sim/taxes.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"

namespace harpe {
namespace taxes_test {

std::vector<std::string> sizes(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {"m=" + std::to_string(m), "n=" + std::to_string(n), "k=" + std::to_string(k)};
}

TEST(Taxes, add_up_to_the_total_and_are_never_negative) {
  const std::vector<std::string> attention = {"seq=8192", "heads=8", "head_dim=64"};
  for (const char* schedule : {"ring", "allgather", "ulysses", "q_rotation", "tree", "usp"}) {
    for (const Launch launch : {Launch::Graph, Launch::Host}) {
      const Plan plan = plan_of("attention", attention, "cp=8", schedule);
      const Taxes taxes = *tax(plan, plain_machine(), launch);
      EXPECT_EQ(
          taxes.launch + taxes.synchronization + taxes.locality + taxes.residual + taxes.roofline,
          taxes.total)
          << schedule;
      for (const Picoseconds one :
           {taxes.launch, taxes.synchronization, taxes.locality, taxes.residual, taxes.roofline}) {
        EXPECT_GE(one, Picoseconds()) << schedule;
      }
      EXPECT_GT(taxes.roofline, Picoseconds()) << schedule;
    }
  }
}

// A large GEMM on one rank costs the roofline and one or two launches.
TEST(Taxes, of_a_product_alone_are_its_launches) {
  const Plan plan = plan_of("gemm", sizes(8192, 8192, 8192), "r=1,c=1", "bulk");
  const Taxes taxes = *tax(plan, plain_machine(10), Launch::Graph);
  const double product = 2.0 * 8192 * 8192 * 8192 / 10e12 * 1e6;
  EXPECT_NEAR(taxes.roofline.microseconds(), product, 0.001 * product);
  EXPECT_EQ(taxes.synchronization, Picoseconds());
  EXPECT_LE(taxes.launch, from_microseconds(6));
  EXPECT_GE(taxes.launch, from_microseconds(2));
  EXPECT_EQ(taxes.bound.kind, ResourceKind::Sm);
}

// A gather, then the GEMM: overlapping them by tiles would save nearly the shorter one.
TEST(Taxes, of_a_bulk_gather_are_synchronization) {
  const Plan plan = plan_of("ag_gemm", sizes(16384, 8192, 8192), "tp=8", "bulk");
  Machine machine = plain_machine(100);
  machine.processor.memory_bandwidth = 1e18;
  for (TransportRate& rate : machine.transports) rate.sms = 0;
  const Taxes taxes = *tax(plan, machine, Launch::Graph);
  const double product = 2.0 * 16384 * 8192 * 8192 / 8 / 100e12 * 1e6;
  const double gather = 7.0 / 8 * 16384 * 8192 * 2 / 100e9 * 1e6;
  EXPECT_NEAR(taxes.total.microseconds(), product + gather, 0.02 * (product + gather));
  EXPECT_NEAR(taxes.roofline.microseconds(), std::max(product, gather), 0.02 * gather);
  EXPECT_NEAR(taxes.synchronization.microseconds(), std::min(product, gather), 0.1 * product);
}

TEST(Taxes, of_many_small_steps_are_launches) {
  const Plan plan = plan_of("ag_gemm", sizes(64, 64, 64), "tp=8", "ring");
  const Taxes graph = *tax(plan, plain_machine(), Launch::Graph);
  EXPECT_GT(graph.launch.seconds(), 0.9 * graph.total.seconds());
  const Taxes host = *tax(plan, plain_machine(), Launch::Host);
  EXPECT_GT(host.launch, graph.launch);
  EXPECT_EQ(host.roofline, graph.roofline);
}

// Partial sums pass through memory between a GEMM and its folds.
TEST(Taxes, of_partial_sums_are_locality) {
  Machine machine = plain_machine(1000);
  machine.processor.memory_bandwidth = 200e9;
  for (TransportRate& rate : machine.transports) rate.bandwidth *= 10;
  for (MachineLevel& level : machine.levels) level.bandwidth *= 10;
  const Plan plan = plan_of("gemm_rs", sizes(8192, 8192, 512), "tp=4", "ring");
  const Taxes taxes = *tax(plan, machine, Launch::Graph);
  EXPECT_GT(taxes.locality.seconds(), 0.3 * taxes.total.seconds());
}

// A delay of any rank delays all, because all wait for the gather.
TEST(Taxes, skew_of_a_bulk_schedule_is_passed_on) {
  const Plan plan = plan_of("ag_gemm", sizes(8192, 8192, 8192), "tp=8", "bulk");
  EXPECT_NEAR(tax(plan, plain_machine(), Launch::Graph)->skew_sensitivity, 1, 1e-6);
}

}  // namespace taxes_test
}  // namespace harpe
