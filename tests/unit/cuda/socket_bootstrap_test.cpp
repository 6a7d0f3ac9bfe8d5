#include "exec/cuda/socket_bootstrap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace harpe::cuda {
namespace {

using std::chrono_literals::operator""ms;
using Met = Result<std::unique_ptr<SocketBootstrap>, BootstrapError>;

std::string address_of(const std::string& name) {
  return "unix:@harpe-test-" + name + "-" + std::to_string(::getpid());
}

Blob blob_of(int rank) { return Blob(static_cast<std::size_t>(rank * 100), std::byte(rank)); }

// Gathers in every rank, each in a thread, some rounds.
void expect_gathered(const std::string& address, int ranks) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([=] {
      const Met met = SocketBootstrap::meet({.address = address, .rank = rank, .ranks = ranks});
      ASSERT_TRUE(met.ok()) << met.error().reason;
      for (int round = 0; round < 3; ++round) {
        const auto all = (*met)->all_gather(blob_of(rank + round));
        ASSERT_TRUE(all.ok()) << all.error().reason;
        ASSERT_EQ(all->size(), static_cast<std::size_t>(ranks));
        for (int of = 0; of < ranks; ++of) {
          EXPECT_EQ((*all)[static_cast<std::size_t>(of)], blob_of(of + round));
        }
      }
    });
  }
}

TEST(SocketBootstrap, gathers_what_every_rank_gives) {
  for (const int ranks : {1, 2, 5}) expect_gathered(address_of("gather"), ranks);
}

TEST(SocketBootstrap, meets_on_the_network_too) { expect_gathered("127.0.0.1:29731", 3); }

TEST(SocketBootstrap, says_who_did_not_come_and_where) {
  const Met host =
      SocketBootstrap::meet({.address = address_of("alone"), .rank = 0, .ranks = 3, .limit = 50ms});
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(host.error().rank, 0);
  EXPECT_EQ(host.error().address, address_of("alone"));
  EXPECT_EQ(host.error().reason, "2 of 3 ranks did not come: the time is over");
  const Met guest = SocketBootstrap::meet(
      {.address = address_of("nobody"), .rank = 2, .ranks = 3, .limit = 50ms});
  ASSERT_FALSE(guest.ok());
  EXPECT_EQ(guest.error().rank, 2);
  EXPECT_EQ(guest.error().reason, "rank 0 is not there: connect: Connection refused");
}

TEST(SocketBootstrap, says_which_rank_is_gone) {
  std::jthread guest([] {
    const Met met = SocketBootstrap::meet({.address = address_of("gone"), .rank = 1, .ranks = 2});
    EXPECT_TRUE(met.ok());
  });
  const Met host = SocketBootstrap::meet({.address = address_of("gone"), .rank = 0, .ranks = 2});
  ASSERT_TRUE(host.ok());
  guest.join();
  const auto all = (*host)->all_gather({});
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().reason, "rank 1: the other end is gone");
}

TEST(SocketBootstrap, refuses_ranks_of_another_run) {
  std::jthread guest([] {
    static_cast<void>(
        SocketBootstrap::meet({.address = address_of("other"), .rank = 1, .ranks = 4}));
  });
  const Met host = SocketBootstrap::meet({.address = address_of("other"), .rank = 0, .ranks = 2});
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(host.error().reason, "somebody came as rank 1 of 4, and there are 2");
}

}  // namespace
}  // namespace harpe::cuda
