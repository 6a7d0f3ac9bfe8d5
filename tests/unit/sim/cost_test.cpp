#include "sim/cost.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"

namespace harpe {
namespace cost_test {

Picoseconds us(double time) { return from_microseconds(time); }

double taken(const ResourceMap& map, const Activity& activity, ResourceKind kind, std::int32_t rank,
             std::int32_t level = 0) {
  double units = 0;
  for (const Use& use : activity.uses) {
    const Resource& resource = map.list[static_cast<std::size_t>(use.resource)];
    if (resource.kind != kind || resource.rank != rank || resource.level != level) continue;
    units += use.rate * activity.work.seconds();
  }
  return units;
}

TEST(Cost, every_resource_is_where_the_map_says) {
  const Machine machine = paired_machine();
  const ResourceMap map = map_resources(machine, 6);
  for (std::int32_t rank = 0; rank < 6; ++rank) {
    for (const ResourceKind kind :
         {ResourceKind::Sm, ResourceKind::Memory, ResourceKind::Egress, ResourceKind::Ingress,
          ResourceKind::Message, ResourceKind::Proxy}) {
      const bool link = kind != ResourceKind::Sm && kind != ResourceKind::Memory;
      for (int level = 0; level < (link ? 2 : 1); ++level) {
        const Resource& resource =
            map.list[static_cast<std::size_t>(find_resource(map, kind, RankId(rank), level))];
        EXPECT_EQ(resource.kind, kind);
        EXPECT_EQ(resource.rank, rank);
        EXPECT_EQ(resource.level, level);
      }
    }
  }
}

TEST(Cost, a_bus_is_one_resource_for_all_of_its_group) {
  Machine machine = paired_machine();
  machine.levels[0].kind = LevelKind::Bus;
  const ResourceMap map = map_resources(machine, 6);
  const auto bus = [&](int rank, ResourceKind kind) {
    return find_resource(map, kind, RankId(rank), 0);
  };
  EXPECT_EQ(bus(0, ResourceKind::Egress), bus(1, ResourceKind::Ingress));
  EXPECT_NE(bus(1, ResourceKind::Egress), bus(2, ResourceKind::Egress));
  const Activity copy = transfer_activity(
      machine, map, {.via = "ce", .from = RankId(2), .to = RankId(3), .bytes = 1e6});
  EXPECT_NEAR(taken(map, copy, ResourceKind::Bus, 2), 1e6, 1);
}

TEST(Cost, a_copy_takes_both_ports_and_both_memories) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 4);
  const Activity copy = transfer_activity(
      machine, map, {.via = "ce", .from = RankId(1), .to = RankId(3), .bytes = 1e6});
  EXPECT_EQ(copy.start, us(4));
  EXPECT_EQ(copy.work, us(10));
  EXPECT_NEAR(taken(map, copy, ResourceKind::Egress, 1), 1e6, 1);
  EXPECT_NEAR(taken(map, copy, ResourceKind::Ingress, 3), 1e6, 1);
  EXPECT_NEAR(taken(map, copy, ResourceKind::Memory, 1), 1e6, 1);
  EXPECT_NEAR(taken(map, copy, ResourceKind::Memory, 3), 1e6, 1);
  EXPECT_EQ(copy.uses.size(), 4U);
}

TEST(Cost, a_copying_kernel_takes_sms_of_the_rank_that_drives_it) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 4);
  const Activity copy = transfer_activity(
      machine, map,
      {.via = "sm", .from = RankId(1), .to = RankId(3), .bytes = 1e6, .driver = RankId(3)});
  EXPECT_EQ(copy.work, us(20));
  EXPECT_NEAR(taken(map, copy, ResourceKind::Sm, 3), 20e-6, 1e-12);
  EXPECT_EQ(taken(map, copy, ResourceKind::Sm, 1), 0);
}

TEST(Cost, within_a_rank_memory_is_read_and_written) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 4);
  const Activity copy = transfer_activity(
      machine, map, {.via = "ce", .from = RankId(1), .to = RankId(1), .bytes = 1e6});
  EXPECT_EQ(copy.work, us(2));
  EXPECT_NEAR(taken(map, copy, ResourceKind::Memory, 1), 2e6, 1);
  EXPECT_EQ(copy.uses.size(), 1U);
}

// Ranks 0 and 3 are on different rails: the way uses the own rail to rank 2, then the pair.
TEST(Cost, another_rail_is_reached_through_the_destination_s_group) {
  const Machine machine = paired_machine();
  const std::vector<Hop> way = path_between(machine, RankId(0), RankId(3));
  EXPECT_EQ(way, (std::vector<Hop>{{RankId(0), RankId(2), 1}, {RankId(2), RankId(3), 0}}));
  EXPECT_EQ(signal_delay(machine, RankId(0), RankId(3)), us(6));
  EXPECT_EQ(signal_delay(machine, RankId(0), RankId(2)), us(5));
  const ResourceMap map = map_resources(machine, 4);
  const Activity put = transfer_activity(
      machine, map, {.via = "proxy", .from = RankId(0), .to = RankId(3), .bytes = 1e6});
  EXPECT_EQ(put.work, us(100));
  EXPECT_NEAR(taken(map, put, ResourceKind::Egress, 0, 1), 1e6, 1);
  EXPECT_NEAR(taken(map, put, ResourceKind::Ingress, 3, 0), 1e6, 1);
  EXPECT_NEAR(taken(map, put, ResourceKind::Message, 0, 1), 1, 1e-6);
}

TEST(Cost, round_a_ring_the_shorter_way_is_taken) {
  Machine machine = plain_machine();
  machine.levels[0].kind = LevelKind::Ring;
  EXPECT_EQ(path_between(machine, RankId(1), RankId(3)),
            (std::vector<Hop>{{RankId(1), RankId(2), 0}, {RankId(2), RankId(3), 0}}));
  EXPECT_EQ(path_between(machine, RankId(1), RankId(15)),
            (std::vector<Hop>{{RankId(1), RankId(0), 0}, {RankId(0), RankId(15), 0}}));
  EXPECT_EQ(barrier_delay(machine, {RankId(0), RankId(1), RankId(8)}), us(8));
}

TEST(Cost, a_leaf_with_half_the_sms_takes_twice_as_long) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 1);
  const LeafShape shape{
      .batch = 1, .rows = 1000, .columns = 1000, .depth = 500, .flops = 1e9, .bytes = 4e6};
  const ComputeCost all{.leaf = "matmul", .dtype = "bf16", .shape = shape};
  const Activity whole = compute_activity(machine, map, RankId(0), all);
  EXPECT_EQ(whole.start, us(2));
  EXPECT_NEAR(whole.work.microseconds(), 10, 0.01);
  EXPECT_NEAR(taken(map, whole, ResourceKind::Memory, 0), 4e6, 1);
  ComputeCost half = all;
  half.sms = 2;
  const Activity slower = compute_activity(machine, map, RankId(0), half);
  EXPECT_NEAR(slower.work.seconds(), 2 * whole.work.seconds(), 1e-12);
  EXPECT_NEAR(taken(map, slower, ResourceKind::Sm, 0), 40e-6, 1e-7);
}

// The leaf is bound by memory, so half of the SMs take the same time.
TEST(Cost, a_leaf_that_waits_for_memory_needs_no_more_time_on_fewer_sms) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 1);
  ComputeCost cost{
      .leaf = "matmul",
      .dtype = "bf16",
      .shape = {.batch = 1, .rows = 1000, .columns = 1000, .depth = 5, .flops = 1e7, .bytes = 4e6},
      .causal = false,
      .sms = 2};
  EXPECT_NEAR(compute_activity(machine, map, RankId(0), cost).work.microseconds(), 4, 0.01);
}

TEST(Cost, passes_over_memory_are_launches_at_the_rate_of_additions) {
  Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 1);
  const auto passes = [&](const std::vector<double>& bytes) {
    return passes_activity(machine, map, RankId(0), "f32", bytes);
  };
  EXPECT_EQ(passes({3e6}).work, us(3));
  EXPECT_EQ(passes({3e6}).start, us(2));
  EXPECT_EQ(passes({0}).work, us(0));
  EXPECT_EQ(passes({3e6, 0, 6e6}).work, us(9));
  EXPECT_EQ(passes({3e6, 0, 6e6}).start, us(4)) << "what moves nothing is not launched";
  EXPECT_NEAR(taken(map, passes({3e6, 6e6}), ResourceKind::Memory, 0), 9e6, 1);
  machine.rates.back().memory_share = 0.5;  // of all leaves; the cache holds 1 MiB
  EXPECT_EQ(passes({3e6}).work, us(6));
  EXPECT_EQ(passes({1e6}).work, us(1));
}

// Initial states of tiles are loaded before the tiles' other work.
TEST(Cost, nothing_hides_a_state_that_is_carried_on) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 1);
  ComputeCost cost{
      .leaf = "matmul",
      .dtype = "bf16",
      .shape = {.batch = 1, .rows = 1000, .columns = 1000, .depth = 500, .flops = 1e9}};
  const Picoseconds begun = compute_activity(machine, map, RankId(0), cost).work;
  cost.carried = 5e6;
  EXPECT_EQ(compute_activity(machine, map, RankId(0), cost).work, begun + us(5));
}

TEST(Cost, a_copy_may_be_slower_than_its_transport_and_take_more_of_the_processor) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 2);
  const TransferCost cost{.via = "sm",
                          .from = RankId(1),
                          .to = RankId(0),
                          .bytes = 1e6,
                          .driver = RankId(0),
                          .sms = 3,
                          .bandwidth = 20e9};
  const Activity copy = transfer_activity(machine, map, cost);
  EXPECT_EQ(copy.work, us(50));
  EXPECT_NEAR(taken(map, copy, ResourceKind::Sm, 0), 150e-6, 1e-9);
  EXPECT_NEAR(taken(map, copy, ResourceKind::Ingress, 0), 1e6, 1);
}

TEST(Cost, members_of_a_collective_send_what_its_kind_asks_for) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 4);
  const auto sent = [&](CollectiveKind kind) {
    const Activity member = collective_activity(
        machine, map, RankId(1), {.kind = kind, .members = 4, .level = 0, .bytes = 4e6});
    return taken(map, member, ResourceKind::Egress, 1);
  };
  EXPECT_NEAR(sent(CollectiveKind::AllGather), 12e6, 1);
  EXPECT_NEAR(sent(CollectiveKind::ReduceScatter), 3e6, 1);
  EXPECT_NEAR(sent(CollectiveKind::AllToAll), 3e6, 1);
  EXPECT_NEAR(sent(CollectiveKind::AllReduce), 6e6, 1);
  EXPECT_NEAR(sent(CollectiveKind::SendRecv), 4e6, 1);
}

TEST(Cost, a_member_goes_over_its_memory_beside_what_crosses) {
  const Machine machine = plain_machine();
  const ResourceMap map = map_resources(machine, 4);
  CollectiveCost cost{
      .kind = CollectiveKind::ReduceScatter, .members = 4, .level = 0, .bytes = 4e6};
  const Activity alone = collective_activity(machine, map, RankId(1), cost);
  cost.passes = {2e6, 3e6};
  cost.dtype = "f32";
  const Activity adding = collective_activity(machine, map, RankId(1), cost);
  EXPECT_EQ(adding.work, alone.work + us(5));
  EXPECT_EQ(adding.start, alone.start + us(4));
  EXPECT_NEAR(taken(map, adding, ResourceKind::Egress, 1), 3e6, 1);
  cost.bandwidth = 10e9;  // of the 3 MB that enter
  EXPECT_EQ(collective_activity(machine, map, RankId(1), cost).work, us(305));
}

}  // namespace cost_test
}  // namespace harpe
