#include "profile/profile_transport.h"

#include <gtest/gtest.h>

#include "compile/machines.h"
#include "machine/rates.h"
#include "sim/fabric.h"

namespace harpe::test {
namespace {

using transport::Ordering;

PolicyFigures ran(Fence policy, Ordering ordering, double both, double quiets) {
  return {.policy = policy,
          .refusal = {},
          .ordering = ordering,
          .one_way = 20e-6,
          .puts = 1e-3,
          .both = both,
          .quiets = quiets};
}

PolicyFigures refused(Fence policy) {
  return {.policy = policy, .refusal = make_diag(DiagCode::N003, {})};
}

// 2 us per post, 1 us per signal, 10 us one way, a quiet of 30 us, 1 GB/s.
TransportFigures figures(transport::Guarantees given, std::vector<PolicyFigures> policies) {
  TransportFigures figures{.provider = "net",
                           .given = given,
                           .ranks = 2,
                           .post = 2e-6,
                           .signal = 1e-6,
                           .flag = 10e-6,
                           .one_way = 20e-6,
                           .quiet = 30e-6,
                           .quiet_of_many = 300e-6,
                           .sizes = {},
                           .policies = std::move(policies)};
  for (const double bytes : {16384.0, 131072.0, 1048576.0}) {
    figures.sizes.emplace_back(bytes, 25e-6 + bytes / 1e9);
  }
  return figures;
}

TransportFigures ordered() {
  return figures({.in_order = true, .immediate = true, .remote_completion = true},
                 {ran(Fence::PerPut, Ordering::OperationQuiet, 10e-3, 96),
                  ran(Fence::NicOrdered, Ordering::InOrder, 1.05e-3, 0),
                  ran(Fence::Batched, Ordering::InOrder, 1.0e-3, 0),
                  ran(Fence::Immediate, Ordering::Immediate, 1.92e-3, 0)});
}

TEST(TransportProfile, alike_the_policy_that_holds_least_is_recommended) {
  const Recommendation choice = recommend(ordered());
  EXPECT_EQ(choice.policy, Fence::NicOrdered);
  EXPECT_EQ(choice.reason,
            "96 puts of 4.0 KiB with a word each take 1.05 ms, 95 % of the speed of puts alone, "
            "ordered by in-order writes, no drain; `put`, a drain for each, 10 ms (9.5 times); "
            "`batch` takes 1 ms, which is alike, and holds words back longer");
}

TEST(TransportProfile, the_fastest_is_recommended_where_others_are_slower) {
  TransportFigures slow_order = ordered();
  slow_order.policies[1].both = 1.2e-3;
  EXPECT_EQ(recommend(slow_order).policy, Fence::Batched);
}

TEST(TransportProfile, what_is_refused_is_not_recommended) {
  const TransportFigures bare =
      figures({.remote_completion = true},
              {ran(Fence::PerPut, Ordering::OperationQuiet, 3e-3, 96), refused(Fence::NicOrdered),
               ran(Fence::OneQuiet, Ordering::EpochQuiet, 1.3e-3, 1)});
  EXPECT_EQ(recommend(bare).policy, Fence::OneQuiet);
}

// The machine's parts add up to the measured times.
TEST(TransportProfile, a_machine_has_the_times_that_were_measured) {
  const Machine base = load_machine("h200x8").value();
  const Machine machine = machine_of(ordered(), base, 4, "eth0").value();
  EXPECT_EQ(machine.processors(), 32);
  const MachineLevel& level = machine.levels.back();
  EXPECT_EQ(level.proxy_post, from_microseconds(2));
  EXPECT_EQ(level.proxy_word, from_microseconds(1));
  EXPECT_EQ(level.latency, from_microseconds(10));
  EXPECT_EQ(level.nic_fence, Picoseconds());  // the provider keeps the order
  EXPECT_EQ(level.proxy_count, from_microseconds(20));
  EXPECT_NEAR(level.bandwidth, 1e9, 1e6);
  const TransportRate* const proxy = find_transport(machine, "proxy", 1);
  ASSERT_NE(proxy, nullptr);
  const double way = 4096e-9 + proxy->start.seconds();
  EXPECT_NEAR(level.proxy_post.seconds() + way + level.latency.seconds(), 20e-6, 1e-8);
  ASSERT_EQ(machine.completions.size(), 2U);
  EXPECT_EQ(machine.completions[1].outstanding, kOutstanding);
  EXPECT_NEAR(machine.completions[0].time.seconds() + way, 30e-6, 1e-7);
}

TEST(TransportProfile, order_that_nothing_gives_costs_a_drain) {
  const Machine base = load_machine("h200x8").value();
  const TransportFigures bare =
      figures({.remote_completion = true},
              {ran(Fence::PerPut, Ordering::OperationQuiet, 3e-3, 96), refused(Fence::NicOrdered)});
  EXPECT_EQ(machine_of(bare, base, 2, "eth0").value().levels.back().nic_fence,
            from_microseconds(30));
  TransportFigures fenced = bare;
  fenced.given.fence = true;  // 96 puts and signals of 3 us, and 7 us each between them
  fenced.policies[1] = ran(Fence::NicOrdered, Ordering::NicFence, 960e-6, 0);
  EXPECT_EQ(machine_of(fenced, base, 2, "eth0").value().levels.back().nic_fence,
            from_microseconds(7));
}

// A machine that already has nodes gets this network in place of its own.
TEST(TransportProfile, a_network_takes_the_place_of_another) {
  const Machine base = load_machine("slingshot_a100x4x16").value();
  const Machine machine = machine_of(ordered(), base, 2, "eth0").value();
  EXPECT_EQ(machine.levels.size(), 2U);
  EXPECT_EQ(machine.processors(), 8);
  const Checked<Machine> again = parse_machine(print(machine), "wire.machine");
  ASSERT_TRUE(again.ok()) << render(again.error());
  EXPECT_EQ(*again, machine);
  FabricRuns runs(machine);
  for (const PutPolicy& policy : all_put_policies()) {
    EXPECT_EQ(runs.has(policy), policy.name != "gpu") << policy.name;
  }
}

}  // namespace
}  // namespace harpe::test
