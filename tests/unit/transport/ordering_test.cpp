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
  std::string expected;  // "ordering, hold, drain", or the message of a refusal
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
      {Policy::Auto, kOrdered, true, "in-order writes, group, one"},
      {Policy::Auto, kOrdered, false, "in-order writes, none, one"},
      {Policy::Auto, kFenced, true, "nic fence, group, one"},
      {Policy::Auto, kFenced, false, "nic fence, none, one"},
      {Policy::Auto, kImmediate, true, "immediate count, epoch, all"},
      {Policy::Auto, kImmediate, false, "immediate count, none, one"},
      {Policy::Auto, kPlain, true, "epoch drain, epoch, all"},
      {Policy::Auto, kPlain, false, "per-operation drain, none, one"},
      {Policy::PerPut, kOrdered, true, "per-operation drain, none, all"},
      {Policy::PerPut, kPlain, true, "per-operation drain, none, all"},
      {Policy::PerDestination, kOrdered, true, "per-operation drain, group, one"},
      {Policy::NicOrdered, kOrdered, true, "in-order writes, none, one"},
      {Policy::NicOrdered, kFenced, true, "nic fence, none, one"},
      {Policy::Batched, kFenced, true, "nic fence, group, one"},
      {Policy::OneQuiet, kOrdered, true, "epoch drain, epoch, all"},
      {Policy::Immediate, kImmediate, true, "immediate count, none, one"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(text_of(row), row.expected) << print(row.policy) << ": " << describe(row.given);
  }
}

TEST(Ordering, relies_on_nothing_that_is_not_given) {
  const std::string who = ", which provider `p` does not give";
  EXPECT_EQ(text_of({Policy::NicOrdered, kImmediate, true, ""}),
            "policy `nic` needs in-order writes or a fence in the NIC" + who);
  EXPECT_EQ(text_of({Policy::Batched, kPlain, true, ""}),
            "policy `grouped` needs in-order writes or a fence in the NIC" + who);
  EXPECT_EQ(text_of({Policy::Immediate, kFenced, true, ""}),
            "policy `immediate` needs data that travels with a put" + who);
  EXPECT_EQ(text_of({Policy::PerPut, {}, true, ""}),
            "policy `tile` needs remote completion of puts" + who);
  EXPECT_EQ(text_of({Policy::Auto, {}, true, ""}),
            "policy `auto` needs in-order writes, a fence or remote completion" + who);
  EXPECT_EQ(choose(Policy::NicOrdered, kPlain, true, "p").error().code, DiagCode::N003);
}

TEST(Ordering, has_names_that_read_back) {
  for (const Policy policy :
       {Policy::Auto, Policy::PerPut, Policy::PerDestination, Policy::NicOrdered, Policy::Batched,
        Policy::OneQuiet, Policy::Immediate}) {
    EXPECT_EQ(parse_policy(print(policy)), policy);
  }
  EXPECT_FALSE(parse_policy("fastest"));
}

}  // namespace
}  // namespace harpe::transport
