#include "verify/terms.h"

#include <gtest/gtest.h>

#include <vector>

namespace harpe::verifier {
namespace {

TEST(Terms, gives_equal_terms_equal_ids) {
  Terms terms;
  const TermId a = terms.intern(TermKind::Input, {3, 5});
  const TermId b = terms.intern(TermKind::Input, {5, 3});
  EXPECT_NE(a, b);
  EXPECT_EQ(terms.intern(TermKind::Input, {3, 5}), a);
  EXPECT_EQ(terms.kind(a), TermKind::Input);
  EXPECT_EQ(terms.words(a)[1], 5);
}

TEST(Terms, are_likely_only_where_every_word_is_the_same) {
  Terms terms;
  const TermId a = terms.intern(TermKind::Contribution, {3, 5, 7});
  const TermId b = terms.intern(TermKind::Contribution, {3, 5, 8}, a);
  EXPECT_NE(a, b);
  EXPECT_NE(terms.intern(TermKind::Contribution, {3, 5}, a), a);
  EXPECT_NE(terms.intern(TermKind::State, {3, 5, 7}, a), a);
  EXPECT_EQ(terms.intern(TermKind::Contribution, {3, 5, 7}, b), a);
  EXPECT_EQ(terms.intern(TermKind::Contribution, {3, 5, 7}, a), a);
}

TEST(Terms, tell_kinds_apart) {
  Terms terms;
  EXPECT_NE(terms.intern(TermKind::Input, {1, 2}), terms.intern(TermKind::State, {1, 2}));
}

// A term that is requested only as the likely one has no table entry. Interning its words without
// it makes another term, which has an entry.
TEST(Terms, of_which_one_is_likely_need_no_entry) {
  Terms terms;
  const std::vector<std::int32_t> words = {3, 5, 7};
  const TermId known = terms.add_likely(TermKind::Contribution, words);
  EXPECT_EQ(terms.intern(TermKind::Contribution, words, known), known);
  EXPECT_EQ(terms.kind(known), TermKind::Contribution);
  const TermId other = terms.intern(TermKind::Contribution, {3, 5, 8}, known);
  EXPECT_NE(other, known);
  EXPECT_EQ(terms.intern(TermKind::Contribution, {3, 5, 8}, known), other);
}

TEST(Terms, stay_apart_in_great_number) {
  Terms terms;
  std::vector<TermId> ids;
  for (std::int32_t i = 0; i < 20000; ++i) {
    ids.push_back(terms.intern(TermKind::Contribution, {i % 7, i, i / 3}));
  }
  for (std::int32_t i = 0; i < 20000; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(terms.intern(TermKind::Contribution, {i % 7, i, i / 3}), ids[at]);
    EXPECT_EQ(terms.words(ids[at])[1], i);
  }
}

TEST(Terms, make_states_of_multisets) {
  Terms terms;
  std::vector<TermId> up = {4, 7, 7, 9};
  std::vector<TermId> down = {9, 7, 4, 7};
  std::vector<TermId> once = {4, 7, 9};
  const TermId state = terms.state(up);
  EXPECT_EQ(terms.state(down), state);
  EXPECT_NE(terms.state(once), state) << "a contribution counts as often as it was made";
}

TEST(Terms, combine_states_in_any_order) {
  Terms terms;
  std::vector<TermId> a = {1, 5};
  std::vector<TermId> b = {3, 5};
  std::vector<TermId> both = {5, 1, 3, 5};
  const TermId first = terms.state(a);
  const TermId second = terms.state(b);
  EXPECT_EQ(terms.combine(first, second), terms.combine(second, first));
  EXPECT_EQ(terms.combine(first, second), terms.state(both));
  EXPECT_EQ(terms.combine(first, terms.empty_state()), first);
}

}  // namespace
}  // namespace harpe::verifier
