// Random programs of several nests: does --check pass right results and catch wrong ones?
//
//   chain_sweep PROGRAMS SEEDS [FIRST]    FIRST: the number of the first program
//
// Prints every disagreement, then the counts. The exit status is 1 if --check fails a right result.
#include <cstdio>
#include <cstdlib>

#include "tests/support/random_chain.h"

int main(int count, char** arguments) {
  namespace support = harpe::testing_support;
  if (count < 3) {
    std::fprintf(stderr, "usage: chain_sweep PROGRAMS SEEDS [FIRST]\n");
    return 2;
  }
  const long programs = std::atol(arguments[1]);
  const long seeds = std::atol(arguments[2]);
  const support::ChainTally tally =
      support::sweep_chains({.programs = programs,
                             .seeds = seeds,
                             .first = count > 3 ? std::atol(arguments[3]) : 0,
                             .mistakes = 4},
                            [](const std::string& text) { std::puts(text.c_str()); });
  std::printf("%s\n", tally.print().c_str());
  return tally.red == 0 && tally.wrong == 0 ? 0 : 1;
}
