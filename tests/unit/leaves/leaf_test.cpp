#include "leaves/leaf.h"

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

TEST(LeafContract, is_known_by_its_name) {
  for (const LeafContract& contract : all_leaf_contracts()) {
    EXPECT_EQ(print(contract.leaf), contract.name);
    EXPECT_TRUE(is_leaf(contract.name, contract.leaf));
  }
  EXPECT_FALSE(is_leaf("matmu", Leaf::Matmul));
  EXPECT_FALSE(is_leaf("add", Leaf::Matmul));
}

TEST(LeafContract, counts_products_and_scores_as_matrices_and_all_else_as_rows) {
  for (const LeafContract& contract : all_leaf_contracts()) {
    const bool is_product = contract.leaf == Leaf::Matmul;
    const bool has_columns = is_product || contract.has_scores();
    EXPECT_EQ(contract.work.second, has_columns ? WorkPart::Columns : WorkPart::Rows);
    EXPECT_EQ(contract.work.summed.has_value(), is_product);
    EXPECT_EQ(contract.work.has_positions, contract.has_scores());
  }
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
