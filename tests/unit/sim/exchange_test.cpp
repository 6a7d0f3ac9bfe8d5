#include "sim/exchange.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/check.h"

namespace harpe {
namespace exchange_test {

// Nodes of two GPUs with a NIC each: a post takes 2 us, a signal 1; a put leaves after 5 us at 10
// GB/s; its completion shows after 20 and a quiet takes 3; a signal is seen after 4.
Machine nodes_of_two(const std::string& nic = "") {
  const std::string from = " from assumed \"round\"\n";
  const std::string text =
      "machine nodes {\n"
      "  processor p sms=8 memory=64gib bandwidth=1000gbs kernel_start=2us" +
      from + "  level link switch size=2 bandwidth=100gbs latency=1us" + from +
      "  level net switch size=8 bandwidth=10gbs latency=4us proxy_post=2us proxy_fence=3us "
      "proxy_word=1us proxy_count=1us gpu_post=0.5us " +
      nic + from + "  transport sm at link start=2us bandwidth=50gbs sms=1" + from +
      "  transport proxy at net start=5us bandwidth=10gbs" + from +
      "  transport ibgda at net start=5us bandwidth=10gbs sms=2" + from +
      "  completion at net groups=4 time=20us" + from +
      "  rate matmul * peak=10tflops tile_rows=128 tile_columns=128" + from + "  rate * *" + from +
      "}\n";
  Checked<Machine> machine = parse_machine(text, "nodes.machine");
  HP_CHECK(machine.ok(), render(machine.error()));
  return std::move(machine).value();
}

ExchangeTimes burst_of(const Machine& machine, std::string_view policy, const Burst& burst,
                       Stand stand = Stand::One) {
  const Checked<Fabric> fabric = find_fabric(machine, 4);
  HP_CHECK(fabric.ok(), render(fabric.error()));
  return run_exchange(build_burst(*fabric, *find_put_policy(policy), burst, stand));
}

constexpr double kRounded = 1e-4;  // us: shares end in whole picoseconds

Picoseconds us(double time) { return from_microseconds(time); }

constexpr Burst kEight{.messages = 8, .destinations = 4, .bytes = 10000};  // 1 us each on the wire

// One resource binds in each case; the sums are computed on paper.
TEST(Exchange, bursts_take_what_their_bottleneck_takes) {
  const Machine machine = nodes_of_two();
  EXPECT_EQ(burst_of(machine, "puts", kEight).total, us(8 * 2 + 5 + 1 + 4));
  EXPECT_EQ(burst_of(machine, "put", kEight).total, us(8 * (2 + 5 + 1 + 20 + 3 + 1) + 4));
  EXPECT_EQ(burst_of(machine, "dest", kEight).total, us(4 * (2 * 2 + 5 + 1 + 20 + 3 + 2 * 1) + 4));
  EXPECT_EQ(burst_of(machine, "epoch", kEight).total, us(8 * 2 + 5 + 1 + 20 + 3 + 8 * 1 + 4));
  EXPECT_EQ(burst_of(machine, "nic", kEight).total, us(8 * (2 + 1) - 1 + 5 + 1 + 4));
  EXPECT_EQ(burst_of(machine, "batch", kEight).total, us(8 * (2 + 1) - 2 + 5 + 1 + 4));
  Burst one = kEight;
  one.messages = 1;
  EXPECT_EQ(burst_of(machine, "imm", one).total, us(2 + 5 + 1 + 1 + 4));
  Burst small = kEight;
  small.bytes = 1000;
  EXPECT_EQ(burst_of(machine, "gpu", small).total, us(8 * 0.5 + 5 + 0.1 + 4));
}

// The receiver's proxy counts arrivals and posts its own puts in one thread.
TEST(Exchange, immediate_data_takes_the_proxy_of_the_receiver) {
  Burst many = kEight;
  many.messages = 800;
  const double time = burst_of(nodes_of_two(), "imm", many).total.microseconds();
  EXPECT_GE(time, 800 * (2 + 1));
  EXPECT_LE(time, 800 * (2 + 1) + 20);
}

TEST(Exchange, large_puts_take_what_the_wire_takes) {
  const Machine machine = nodes_of_two();
  Burst large = kEight;
  large.bytes = 1e7;  // 1 ms each
  EXPECT_NEAR(burst_of(machine, "puts", large).total.microseconds(), 2 + 5 + 8 * 1000 + 4,
              kRounded);
  for (const PutPolicy& policy : all_put_policies()) {
    const double share = burst_of(machine, "puts", large).total.seconds() /
                         burst_of(machine, policy.name, large).total.seconds();
    EXPECT_GT(share, 0.95) << policy.name;
  }
}

TEST(Exchange, drains_are_what_a_queue_stands_still_for) {
  const Machine machine = nodes_of_two();
  EXPECT_EQ(burst_of(machine, "put", kEight).fences, us(8 * (5 + 1 + 20 + 3)));
  EXPECT_EQ(burst_of(machine, "dest", kEight).fences, us(4 * (5 + 1 + 20 + 3)));
  EXPECT_EQ(burst_of(machine, "epoch", kEight).fences, us(5 + 1 + 20 + 3));
  EXPECT_EQ(burst_of(machine, "nic", kEight).fences, us(0));
}

// A signal that the NIC delays also delays what follows, on its connection or on all.
TEST(Exchange, a_gap_of_the_nic_is_paid_per_signal_or_per_batch) {
  const Burst one{.messages = 8, .destinations = 1, .bytes = 10000};
  EXPECT_EQ(burst_of(nodes_of_two("nic_fence=10us"), "nic", one).total,
            us(2 + 5 + 1 + 10 + 7 * (1 + 10) + 4));
  EXPECT_EQ(burst_of(nodes_of_two("nic_drain=10us"), "batch", kEight).total,
            us(2 * 2 + 5 + 1 + 10 + 3 * (2 * 1 + 10) + 4));
  // A gap on one connection does not stop the others.
  EXPECT_LT(burst_of(nodes_of_two("nic_fence=10us"), "batch", kEight).total,
            burst_of(nodes_of_two("nic_drain=10us"), "batch", kEight).total);
}

// The gap grows with the number of nodes: 4 nodes are three more than one.
TEST(Exchange, a_gap_of_the_nic_grows_with_nodes) {
  Machine machine = nodes_of_two("nic_drain=10us");
  machine.completions = {
      {.level = "net", .groups = 1, .time = {}, .from = {}},
      {.level = "net", .groups = 2, .time = us(20), .nic_drain = us(2), .from = {}}};
  EXPECT_EQ(burst_of(machine, "batch", kEight).total,
            us(2 * 2 + 5 + 1 + 16 + 3 * (2 * 1 + 16) + 4));
  EXPECT_EQ(burst_of(machine, "epoch", kEight).total, us(8 * 2 + 5 + 1 + 60 + 3 + 8 * 1 + 4));
}

// 6 of 8 GPUs are on other nodes.
TEST(Exchange, a_proxy_looks_at_all_peers_for_every_put) {
  EXPECT_EQ(burst_of(nodes_of_two("proxy_peer=0.5us"), "puts", kEight).total,
            us(8 * (2 + 6 * 0.5) + 5 + 1 + 4));
}

TEST(Exchange, a_message_rate_binds_small_puts) {
  const Machine machine = nodes_of_two("messages=100000");  // one in 10 us
  Burst small = kEight;
  small.bytes = 1;
  EXPECT_NEAR(burst_of(machine, "puts", small).total.microseconds(), 2 + 5 + 8 * 10 + 4, kRounded);
}

// A weaker order is never slower, except for the rounding of ends.
TEST(Exchange, weaker_orders_are_not_slower) {
  std::mt19937 random(7);
  const auto any = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const std::string gap = std::to_string(any(0, 30)) + "us";
    const char* const kinds[] = {"nic_fence=", "nic_drain="};
    const Machine machine = nodes_of_two(kinds[any(0, 1)] + gap);
    const Burst burst{.messages = any(1, 60),
                      .destinations = any(1, 6),
                      .bytes = static_cast<double>(any(1, 200000))};
    const auto time = [&](std::string_view policy) {
      return burst_of(machine, policy, burst).total;
    };
    EXPECT_LE(time("dest"), time("put"));
    EXPECT_LE(time("epoch"), time("dest"));
    EXPECT_LE(time("batch"), time("nic"));
    EXPECT_LE(time("imm"), time("put"));
    for (const char* const policy : {"put", "dest", "nic", "batch", "epoch", "imm"}) {
      EXPECT_LE(time("puts").microseconds(), time(policy).microseconds() + kRounded) << policy;
    }
  }
}

ExpertLayer small_layer(std::int64_t tokens) {
  return {.hidden = 256, .inter = 512, .experts = 16, .topk = 4, .tokens = tokens};
}

// All GPUs have the same traffic, so simulating one gives the exact time of all.
TEST(Exchange, one_gpu_stands_for_all) {
  for (const std::string nic : {"", "nic_fence=7us", "nic_drain=7us messages=200000"}) {
    const Machine machine = nodes_of_two(nic);
    const Checked<Fabric> fabric = find_fabric(machine, 4);
    ASSERT_TRUE(fabric.ok());
    for (const PutPolicy& policy : all_put_policies()) {
      const Burst burst{.messages = 12, .destinations = 6, .bytes = 50000};
      EXPECT_EQ(burst_of(machine, policy.name, burst).total,
                burst_of(machine, policy.name, burst, Stand::Each).total)
          << policy.name;
      for (const std::int64_t tokens : {40, 1200}) {
        const auto one = run_exchange(build_layer(*fabric, policy, small_layer(tokens)));
        const auto each =
            run_exchange(build_layer(*fabric, policy, small_layer(tokens), Stand::Each));
        EXPECT_EQ(one.total, each.total) << policy.name << " " << tokens;
        EXPECT_EQ(one.fences, each.fences) << policy.name << " " << tokens;
      }
    }
  }
}

// The time exceeds each of the two parts, but is less than their sum.
TEST(Exchange, tiles_run_while_others_are_on_their_way) {
  Machine machine = nodes_of_two();
  for (LeafRate& rate : machine.rates) rate.peak /= 2;  // about as long as the wire takes
  const Checked<Fabric> fabric = find_fabric(machine, 4);
  ASSERT_TRUE(fabric.ok());
  const PutPolicy& policy = *find_put_policy("batch");
  const ExpertLayer layer = small_layer(4096);
  const ExchangeWorkload both = build_layer(*fabric, policy, layer);
  const double total = run_exchange(both).total.seconds();
  Machine fast = machine;
  for (LeafRate& rate : fast.rates) rate.peak *= 1e6;
  Fabric quick = *fabric;
  quick.machine = &fast;
  const double alone = run_exchange(build_layer(quick, policy, layer)).total.seconds();
  EXPECT_GT(total, both.tile_seconds);
  EXPECT_GT(total, alone);
  EXPECT_LT(total, 0.95 * (both.tile_seconds + alone));
}

TEST(Exchange, needs_nodes_with_nics) {
  const Machine machine = nodes_of_two();
  EXPECT_EQ(find_fabric(machine, 9).error().code, DiagCode::M117);
  Machine alone = machine;
  std::erase_if(alone.transports, [](const TransportRate& rate) { return rate.via == "proxy"; });
  EXPECT_EQ(find_fabric(alone, 2).error().code, DiagCode::M118);
}

}  // namespace exchange_test
}  // namespace harpe
