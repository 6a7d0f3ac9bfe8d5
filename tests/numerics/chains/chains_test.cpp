// Random programs of several nests with cancelling sums, on CPU ranks: the check passes right
// results and catches wrong ones. `chain_sweep PROGRAMS SEEDS` tries more programs.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/random_chain.h"

namespace harpe::testing_support {
namespace {

TEST(Chains, that_cancel_are_not_red_where_they_are_right) {
  const ChainTally tally =
      sweep_chains({.programs = 60, .seeds = 2, .first = 100000, .mistakes = 4},
                   [](const std::string& text) { ADD_FAILURE() << text; });
  std::puts(tally.print().c_str());
  EXPECT_EQ(tally.runs, 120);
  // Some mistakes are as small as the roundings of 16-bit values.
  EXPECT_GE(tally.mistakes, 150);
  EXPECT_GE(static_cast<double>(tally.caught), 0.97 * static_cast<double>(tally.mistakes));
}

}  // namespace
}  // namespace harpe::testing_support
