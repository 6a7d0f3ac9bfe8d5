#include "ir/leaf_contract.h"

#include <gtest/gtest.h>

#include <set>

namespace harpe {
namespace {

TEST(LeafContract, is_found_by_its_exact_name) {
  for (const LeafContract& contract : all_leaf_contracts()) {
    EXPECT_EQ(find_leaf_contract(contract.name), &contract);
  }
  EXPECT_EQ(find_leaf_contract("matmu"), nullptr);
  EXPECT_EQ(find_leaf_contract(""), nullptr);
}

TEST(LeafContract, names_are_unique) {
  std::set<std::string_view> names;
  for (const LeafContract& contract : all_leaf_contracts()) names.insert(contract.name);
  EXPECT_EQ(names.size(), all_leaf_contracts().size());
}

TEST(LeafContract, gives_the_arity_and_monoid_of_every_leaf) {
  const LeafContract& matmul = *find_leaf_contract("matmul");
  EXPECT_EQ(matmul.operands, 2);
  EXPECT_EQ(matmul.targets, 1);
  EXPECT_EQ(matmul.monoid, Monoid::Sum);
  EXPECT_FALSE(matmul.takes_masks);
  const LeafContract& attention = *find_leaf_contract("attn_fwd");
  EXPECT_EQ(attention.operands, 3);
  EXPECT_EQ(attention.targets, 2);
  EXPECT_EQ(attention.monoid, Monoid::Lse);
  EXPECT_TRUE(attention.takes_masks);
  const LeafContract& copy = *find_leaf_contract("copy");
  EXPECT_EQ(copy.operands, 1);
  EXPECT_EQ(copy.targets, 1);
  EXPECT_EQ(copy.monoid, Monoid::Store);
}

}  // namespace
}  // namespace harpe
