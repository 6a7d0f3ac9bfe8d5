#include "transport/ordering.h"

#include <gtest/gtest.h>

namespace harpe::transport {
namespace {

constexpr Guarantees kOrdered{.in_order = true, .remote_completion = true};
constexpr Guarantees kFenced{.fence = true, .remote_completion = true};
constexpr Guarantees kImmediate{.immediate = true, .immediate_bytes = 4, .remote_completion = true};
constexpr Guarantees kPlain{.remote_completion = true};

struct Row {
  Policy policy;
  Guarantees given;
  bool may_hold;
  std::string expected;  // "ordering, hold, all or one", or a refusal
};

std::string text_of(const Row& row) {
  constexpr std::array kHolds = {"none", "group", "epoch"};
  const auto chosen = choose(row.policy, row.given, row.may_hold, "p");
  if (!chosen.ok()) return render_message(chosen.error());
  return std::string(print(chosen->ordering)) + ", " +
         kHolds[static_cast<std::size_t>(chosen->hold)] +
         (chosen->quiet_all_ranks ? ", all" : ", one");
}

TEST(Ordering, is_chosen_by_policy_and_by_what_the_provider_gives) {
  const std::vector<Row> rows = {
      {std::nullopt, kOrdered, true, "in-order writes, group, one"},
      {std::nullopt, kOrdered, false, "in-order writes, none, one"},
      {std::nullopt, kFenced, true, "nic fence, group, one"},
      {std::nullopt, kFenced, false, "nic fence, none, one"},
      {std::nullopt, kImmediate, true, "immediate count, epoch, all"},
      {std::nullopt, kImmediate, false, "immediate count, none, one"},
      {std::nullopt, kPlain, true, "epoch drain, epoch, all"},
      {std::nullopt, kPlain, false, "per-operation drain, none, one"},
      {Fence::PerPut, kOrdered, true, "per-operation drain, none, all"},
      {Fence::PerPut, kPlain, true, "per-operation drain, none, all"},
      {Fence::PerDestination, kOrdered, true, "per-operation drain, group, one"},
      {Fence::NicOrdered, kOrdered, true, "in-order writes, none, one"},
      {Fence::NicOrdered, kFenced, true, "nic fence, none, one"},
      {Fence::Batched, kFenced, true, "nic fence, group, one"},
      {Fence::OneQuiet, kOrdered, true, "epoch drain, epoch, all"},
      {Fence::Immediate, kImmediate, true, "immediate count, none, one"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(text_of(row), row.expected)
        << print_policy(row.policy) << ": " << describe(row.given);
  }
}

TEST(Ordering, relies_on_nothing_that_is_not_given) {
  const std::string who = ", which provider `p` does not give";
  EXPECT_EQ(text_of({Fence::NicOrdered, kImmediate, true, ""}),
            "policy `nic` needs in-order writes or a fence in the NIC" + who);
  EXPECT_EQ(text_of({Fence::Batched, kPlain, true, ""}),
            "policy `batch` needs in-order writes or a fence in the NIC" + who);
  EXPECT_EQ(text_of({Fence::Immediate, kFenced, true, ""}),
            "policy `imm` needs data that travels with a put" + who);
  EXPECT_EQ(text_of({Fence::PerPut, {}, true, ""}),
            "policy `put` needs remote completion of puts" + who);
  EXPECT_EQ(text_of({std::nullopt, {}, true, ""}),
            "policy `auto` needs in-order writes, a fence or remote completion" + who);
  EXPECT_EQ(choose(Fence::NicOrdered, kPlain, true, "p").error().code, DiagCode::N003);
}

}  // namespace
}  // namespace harpe::transport
