// Two test hosts are half a millisecond apart. The measurements of `harpe profile --transport` must
// show this delay, and the recommended policy must not pay it repeatedly. Status 77: no test hosts
// here.
#include <cstdio>

#include "compile/machines.h"
#include "profile/profile_transport.h"
#include "tests/support/hosts.h"

namespace harpe::test {
namespace {

constexpr double kOneWay = 500e-6;

bool expect(bool holds, const char* what, double value) {
  if (!holds) std::fprintf(stderr, "%s: %g\n", what, value);
  return holds;
}

bool is_plausible(const TransportFigures& figures, const Machine& machine) {
  bool good = expect(figures.flag >= kOneWay, "a word takes less than the way", figures.flag);
  good &=
      expect(figures.quiet >= 2 * kOneWay, "a drain takes less than a round trip", figures.quiet);
  good &= expect(figures.post < kOneWay / 4, "a post waits for the other side", figures.post);
  good &= expect(machine.levels.back().latency.seconds() >= kOneWay, "the machine's latency",
                 machine.levels.back().latency.seconds());
  for (const PolicyFigures& one : figures.policies) {
    if (one.policy != Fence::PerPut) continue;
    good &= expect(one.both >= kBurstPuts * 2 * kOneWay, "a drain for each put", one.both);
  }
  const Recommendation choice = recommend(figures);
  const bool waits = choice.policy == Fence::PerPut || choice.policy == Fence::PerDestination;
  if (waits) std::fprintf(stderr, "recommended: %s\n", choice.reason.c_str());
  return good && !waits;
}

int profile_on(int host) {
  const auto figures = measure_transport({.provider = "tcp;ofi_rxm",
                                          .interface = kHostInterface,
                                          .meeting = {.address = host_address(0, 29'300),
                                                      .interface = kHostInterface,
                                                      .secret = "profile",
                                                      .rank = host,
                                                      .ranks = 2},
                                          .quick = true});
  if (!figures.ok()) {
    std::fprintf(stderr, "%s\n", render(figures.error()).c_str());
    return 2;
  }
  if (host != 0) return 0;
  const auto machine = machine_of(*figures, *load_machine("h200x8"), 2, kHostInterface);
  if (!machine.ok()) {
    std::fprintf(stderr, "%s\n", render(machine.error()).c_str());
    return 3;
  }
  return is_plausible(*figures, *machine) ? 0 : 1;
}

int run() {
  const HostRun hosts =
      run_on_hosts({.count = 2, .wire = {.delay = std::chrono::microseconds(500)}}, profile_on);
  if (hosts.skip) {
    std::printf("skipped: %s\n", hosts.skip->c_str());
    return 77;
  }
  return hosts.statuses[0] != 0 ? hosts.statuses[0] : hosts.statuses[1];
}

}  // namespace
}  // namespace harpe::test

int main() { return harpe::test::run(); }
