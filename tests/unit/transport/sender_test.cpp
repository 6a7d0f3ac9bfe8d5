#include "transport/sender.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/adversarial_provider.h"

namespace harpe::transport {
namespace sender_test {

using test::AdversarialProvider;
using test::Placed;

constexpr int kRanks = 4;
constexpr std::int64_t kBytes = 1 << 20;
constexpr std::int64_t kBlock = 64;

struct Case {
  Policy policy = {};
  Guarantees honoured;
  // The guarantees reported to the sender; by default the honoured ones.
  std::optional<Guarantees> claimed{};
  Strength strength = Strength::Strong;
};

// One sender, rank 0, and the order in which its operations are placed on the other ranks. The n-th
// put to a rank writes block n of its memory, the n-th signal sets signal n.
class Sending {
 public:
  Sending(const Case& with, std::uint64_t seed)
      : provider_(with.honoured, seed, [this](const Placed& placed) { see(placed); }) {
    for (int rank = 0; rank < kRanks; ++rank) rings_.push_back(std::make_unique<Ring>(64));
    const auto strategy = choose(with.policy, with.claimed.value_or(with.honoured), true, "p");
    HP_CHECK(strategy.ok(), "the policy suits the provider");
    strategy_ = *strategy;
    sender_ = std::make_unique<Sender>(
        Sender::Options{.strategy = strategy_, .limit = std::chrono::milliseconds(200)}, provider_,
        std::vector<std::vector<std::int64_t>>(kRanks, {kBytes, kBytes}), rings_);
  }

  void put(int to) { push(to, put_command(to)); }

  void put_signal(int to, Strength strength, Follows follows) {
    Command command = put_command(to);
    command.operation = Operation::PutSignal;
    add_signal(command, to, strength, follows);
    push(to, command);
  }

  void signal(int to, Follows follows) {
    Command command{.operation = Operation::Signal};
    add_signal(command, to, Strength::Strong, follows);
    push(to, command);
  }

  void fence(int to) {
    push(to, {.operation = Operation::Fence});
    facts_[to].fenced = facts_[to].puts;
  }

  // Turns until all operations complete; false if some never do.
  bool finish() {
    std::vector<Ticket> tickets;
    for (int to = 0; to < kRanks; ++to) tickets.push_back(push(to, {}));
    for (int round = 0; round < 200'000; ++round) {
      turn();
      bool is_over = true;
      for (int to = 0; to < kRanks; ++to) {
        is_over = is_over && rings_[static_cast<std::size_t>(to)]->completed() >
                                 tickets[static_cast<std::size_t>(to)];
      }
      if (is_over) return true;
    }
    return false;
  }

  void turn() {
    const auto stepped = sender_->step();
    EXPECT_TRUE(stepped.ok()) << render(to_diag(stepped.error()));
  }

  Ticket push(int to, const Command& command) {
    Ring& ring = *rings_[static_cast<std::size_t>(to)];
    for (int round = 0; round < 200'000; ++round) {
      if (const auto ticket = ring.try_push(encode(command))) return *ticket;
      turn();
    }
    ADD_FAILURE() << "the ring stays full";
    return 0;
  }

  // The number of violations: puts placed before their fence, and signals seen before their puts.
  [[nodiscard]] int early() const { return early_; }
  [[nodiscard]] int seen() const { return seen_; }
  [[nodiscard]] int placed(int to) { return facts_[to].placed_count; }
  [[nodiscard]] int puts(int to) { return facts_[to].puts; }
  Sender& sender() { return *sender_; }
  AdversarialProvider& provider() { return provider_; }
  Ring& ring(int to) { return *rings_[static_cast<std::size_t>(to)]; }

 private:
  struct Facts {
    int puts = 0;
    int signals = 0;
    int fenced = 0;  // puts in front of the last fence
    int placed_count = 0;
    std::vector<bool> placed{};
    std::vector<int> after{};                    // per put: puts in front of its fence
    std::vector<std::pair<int, int>> covered{};  // per signal: its puts [first, last)
  };

  Command put_command(int to) {
    Facts& facts = facts_[to];
    const std::int64_t at = facts.puts * kBlock;
    ++facts.puts;
    facts.placed.push_back(false);
    facts.after.push_back(facts.fenced);
    return {.operation = Operation::Put,
            .source = {.region = 0, .offset = 0},
            .destination = {.region = 0, .offset = at},
            .bytes = kBlock};
  }

  void add_signal(Command& command, int to, Strength strength, Follows follows) {
    Facts& facts = facts_[to];
    command.word = {.region = 1, .offset = 4 * facts.signals++};
    command.value = 1;
    command.strength = strength;
    command.follows = follows;
    const int first = strength == Strength::Strong ? 0 : facts.puts - 1;
    facts.covered.emplace_back(first, facts.puts);
  }

  void see(const Placed& what) {
    Facts& facts = facts_[what.peer];
    if (what.put) {
      const auto number = static_cast<std::size_t>(what.put->destination.offset / kBlock);
      for (int before = 0; before < facts.after[number]; ++before) {
        if (!facts.placed[static_cast<std::size_t>(before)]) ++early_;
      }
      facts.placed[number] = true;
      ++facts.placed_count;
    }
    if (what.word) {
      const auto number = static_cast<std::size_t>(what.word->word.offset / 4);
      ++seen_;
      const auto [first, last] = facts.covered[number];
      for (int covered = first; covered < last; ++covered) {
        if (!facts.placed[static_cast<std::size_t>(covered)]) ++early_;
      }
    }
  }

  std::vector<std::unique_ptr<Ring>> rings_;
  AdversarialProvider provider_;
  Strategy strategy_;
  std::unique_ptr<Sender> sender_;
  std::map<int, Facts> facts_;
  int early_ = 0;
  int seen_ = 0;
};

// Sends groups to random ranks, with plain puts, lone signals and fences between.
int send_at_random(Sending& sending, const Case& with, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  int signals = 0;
  for (int epoch = 0; epoch < 6; ++epoch) {
    for (int to = 1; to < kRanks; ++to) {
      const int count = static_cast<int>(draw() % 5);
      for (int at = 0; at <= count; ++at) {
        if (draw() % 3 == 0) sending.put(to);
        if (draw() % 8 == 0) sending.fence(to);
        const bool is_last = at == count;
        const Follows follows = !is_last           ? Follows::Group
                                : to == kRanks - 1 ? Follows::Nothing
                                                   : Follows::Epoch;
        if (draw() % 6 == 0) {
          sending.signal(to, follows);
        } else {
          sending.put_signal(to, with.strength, follows);
        }
        ++signals;
        if (draw() % 2 == 0) sending.turn();
      }
    }
  }
  return signals;
}

std::vector<Guarantees> all_guarantees() {
  std::vector<Guarantees> all;
  for (int bits = 0; bits < 16; ++bits) {
    all.push_back({.in_order = (bits & 1) != 0,
                   .fence = (bits & 2) != 0,
                   .immediate = (bits & 4) != 0,
                   .immediate_bytes = 8,
                   .remote_completion = (bits & 8) != 0});
  }
  return all;
}

constexpr std::array<Policy, 7> kPolicies = {
    std::nullopt,   Fence::PerPut,   Fence::PerDestination, Fence::NicOrdered,
    Fence::Batched, Fence::OneQuiet, Fence::Immediate};

TEST(Sender, lets_no_signal_overtake_what_it_covers_whatever_the_provider_gives) {
  int cases = 0;
  for (const Guarantees& given : all_guarantees()) {
    for (const Policy policy : kPolicies) {
      if (!choose(policy, given, true, "p").ok()) continue;
      for (const Strength strength : {Strength::Strong, Strength::Weak}) {
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
          const Case with{.policy = policy, .honoured = given, .strength = strength};
          Sending sending(with, seed);
          const int signals = send_at_random(sending, with, seed + 100);
          ASSERT_TRUE(sending.finish());
          // Completions of this provider do not show that an operation is placed.
          for (int round = 0; !given.remote_completion && round < 2000; ++round) sending.turn();
          ASSERT_EQ(sending.early(), 0)
              << print_policy(policy) << " on " << describe(given) << ", seed " << seed;
          ASSERT_EQ(sending.seen(), signals);
          ++cases;
        }
      }
    }
  }
  EXPECT_GT(cases, 1000);
}

// The check above detects every way in which a provider breaks its promises.
TEST(Sender, is_caught_where_a_provider_promises_and_does_not_keep) {
  const Guarantees nothing{.immediate_bytes = 8};
  const std::vector<Case> lies = {
      {.policy = Fence::NicOrdered, .honoured = nothing, .claimed = Guarantees{.in_order = true}},
      {.policy = Fence::Batched, .honoured = nothing, .claimed = Guarantees{.in_order = true}},
      {.policy = Fence::NicOrdered, .honoured = nothing, .claimed = Guarantees{.fence = true}},
      {.policy = Fence::Batched, .honoured = nothing, .claimed = Guarantees{.fence = true}},
      {.policy = Fence::PerPut,
       .honoured = nothing,
       .claimed = Guarantees{.remote_completion = true}},
      {.policy = Fence::PerDestination,
       .honoured = nothing,
       .claimed = Guarantees{.remote_completion = true}},
      {.policy = Fence::OneQuiet,
       .honoured = nothing,
       .claimed = Guarantees{.remote_completion = true}},
      {.policy = Fence::Immediate,
       .honoured = {.immediate = true, .immediate_bytes = 8},
       .claimed = Guarantees{.in_order = true, .immediate = true, .immediate_bytes = 8}},
  };
  for (const Case& lie : lies) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Sending sending(lie, seed);
      send_at_random(sending, lie, seed + 100);
      // Waits for all arrivals, because completions of this provider prove nothing.
      ASSERT_TRUE(sending.finish());
      for (int round = 0; round < 5000; ++round) sending.turn();
      EXPECT_GT(sending.early(), 0) << print_policy(lie.policy) << " claiming "
                                    << describe(*lie.claimed) << ", seed " << seed;
    }
  }
}

Counters count(Policy policy, const Guarantees& given) {
  Sending sending({.policy = policy, .honoured = given}, 1);
  for (int tile = 0; tile < 8; ++tile) {
    for (int to = 1; to < kRanks; ++to) {
      const Follows follows = tile < 7           ? Follows::Group
                              : to == kRanks - 1 ? Follows::Nothing
                                                 : Follows::Epoch;
      sending.put_signal(to, Strength::Strong, follows);
    }
  }
  EXPECT_TRUE(sending.finish());
  EXPECT_EQ(sending.early(), 0);
  Counters all;
  for (int to = 0; to < kRanks; ++to) all += sending.sender().counters(to);
  EXPECT_EQ(all.puts, 24);
  EXPECT_EQ(all.signals, 24);
  EXPECT_EQ(all.bytes, 24 * kBlock);
  return all;
}

TEST(Sender, fences_as_often_as_its_policy_says) {
  const Guarantees ordered{.in_order = true, .remote_completion = true};
  const Guarantees fenced{.fence = true, .remote_completion = true};
  const Guarantees immediate{
      .in_order = true, .immediate = true, .immediate_bytes = 8, .remote_completion = true};
  EXPECT_EQ(count(Fence::PerPut, ordered).quiets, 24);
  EXPECT_EQ(count(Fence::PerDestination, ordered).quiets, 3);
  EXPECT_EQ(count(Fence::OneQuiet, ordered).quiets, 1);
  for (const Policy policy : {Fence::NicOrdered, Fence::Batched, Fence::Immediate}) {
    const Counters counted = count(policy, immediate);
    EXPECT_EQ(counted.quiets + counted.nic_fences + counted.stalled_ns, 0) << print_policy(policy);
  }
  EXPECT_EQ(count(Fence::NicOrdered, fenced).nic_fences, 24);
  EXPECT_EQ(count(Fence::Batched, fenced).nic_fences, 3);
}

TEST(Sender, holds_back_an_open_group_until_it_ends_or_is_asked_for) {
  const Case with{.policy = Fence::Batched,
                  .honoured = {.in_order = true, .remote_completion = true}};
  Sending sending(with, 3);
  sending.put_signal(1, Strength::Strong, Follows::Group);
  for (int round = 0; round < 200; ++round) sending.turn();
  EXPECT_EQ(sending.placed(1), 1);
  EXPECT_EQ(sending.seen(), 0);
  // The source may be reused, although the put has not completed.
  EXPECT_EQ(sending.ring(1).sent(), 1U);
  EXPECT_EQ(sending.ring(1).completed(), 0U);
  EXPECT_TRUE(sending.finish());
  EXPECT_EQ(sending.seen(), 1);
}

TEST(Sender, gives_up_on_a_rank_that_completes_nothing_and_names_it) {
  Sending sending({.policy = Fence::PerPut, .honoured = {.remote_completion = true}}, 1);
  sending.provider().cut();
  sending.put_signal(2, Strength::Strong, Follows::Nothing);
  const auto begin = std::chrono::steady_clock::now();
  std::optional<TransportError> error;
  while (!error && std::chrono::steady_clock::now() - begin < std::chrono::seconds(5)) {
    const auto stepped = sending.sender().step();
    if (!stepped.ok()) error = stepped.error();
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, Failure::Expired);
  EXPECT_EQ(error->peer, 2);
  EXPECT_EQ(error->what, "remote completion of 1 operation");
  EXPECT_EQ(to_diag(*error).code, DiagCode::N020);
  EXPECT_GE(error->elapsed.count(), 200);
}

TEST(Sender, refuses_a_descriptor_that_is_none_and_writes_nothing) {
  Sending sending({.policy = std::nullopt, .honoured = {.in_order = true}}, 1);
  Words words = encode({.operation = Operation::Put,
                        .source = {},
                        .destination = {.region = 0, .offset = kBytes},
                        .bytes = 1});
  ASSERT_TRUE(sending.ring(1).try_push(words));
  const auto stepped = sending.sender().step();
  ASSERT_FALSE(stepped.ok());
  const Diag diag = to_diag(stepped.error());
  EXPECT_EQ(diag.code, DiagCode::N022);
  EXPECT_EQ(
      render_message(diag),
      "rank 0 refuses a descriptor for memory of rank 1: a destination of 1 bytes at 1048576 of "
      "region 0, which has 1048576");
  EXPECT_EQ(sending.sender().counters(1).puts, 0);
}

}  // namespace sender_test
}  // namespace harpe::transport
