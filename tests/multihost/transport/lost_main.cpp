// The cable between two test hosts is pulled while one puts and the other waits. Both must name the
// lost peer after their limit, at most 2 s later. Status 77: no test hosts here.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/support/hosts.h"
#include "tests/support/rank_group.h"
#include "transport/fabric_provider.h"

namespace harpe::transport::test {
namespace {

constexpr std::chrono::milliseconds kLimit{1'500};
constexpr std::chrono::milliseconds kGrace{2'000};
constexpr Place kWord{.region = 1, .offset = 0};

// Runs epochs until the first error; at least a few succeed first.
std::optional<TransportError> exchange(RankEnd& end, std::uint32_t& epochs) {
  const int other = 1 - end.rank;
  for (std::uint32_t epoch = 1;; ++epoch) {
    const auto put = end.endpoint->put_signal(
        other, {.source = {.offset = 4096}, .destination = {.offset = 0}, .bytes = 4096},
        {.word = kWord, .value = epoch});
    if (!put.ok()) return put.error();
    const auto seen = end.endpoint->wait(kWord, epoch, other);
    if (!seen.ok()) return seen.error();
    const auto over = end.endpoint->quiet(other);
    if (!over.ok()) return over.error();
    epochs = epoch;
  }
}

int judge(RankEnd& end) {
  std::uint32_t epochs = 0;
  const auto error = exchange(end, epochs);
  std::printf("after %u epochs: %s\n", epochs, render(to_diag(*error)).c_str());
  std::fflush(stdout);
  const bool is_named = error->rank == end.rank && error->peer == 1 - end.rank;
  const bool is_soon = error->kind != Failure::Expired || error->elapsed <= kLimit + kGrace;
  return is_named && is_soon && epochs > 3 ? 0 : 1;
}

int run_host(int host) {
  const bool is_set_up = run_group(
      {.ranks = {host},
       .endpoint = {.ranks = 2, .limit = kLimit},
       .meeting = {.address = harpe::test::host_address(0, 29'600),
                   .interface = harpe::test::kHostInterface,
                   .secret = "lost"},
       .sizes = {8192, 64},
       .make = [] { return make_fabric_provider({.interface = harpe::test::kHostInterface}); }},
      // Exits at once: the peer is unreachable, so a final rendezvous would wait in vain.
      [](RankEnd& end) { std::_Exit(judge(end)); });
  return is_set_up ? 0 : 4;
}

}  // namespace
}  // namespace harpe::transport::test

int main() {
  using harpe::test::Wire;
  const harpe::test::HostRun run =
      harpe::test::run_on_hosts({.count = 2,
                                 .wire = {.delay = std::chrono::microseconds(100)},
                                 .limit = std::chrono::seconds(30)},
                                harpe::transport::test::run_host, [](Wire& wire) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds(2'500));
                                  wire.cut(1);
                                });
  if (run.skip) {
    std::printf("skipped: %s\n", run.skip->c_str());
    return 77;
  }
  return run.statuses[0] == 0 && run.statuses[1] == 0 ? 0 : 1;
}
