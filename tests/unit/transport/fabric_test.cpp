#include "transport/fabric_provider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "tests/support/rank_group.h"

namespace harpe::transport {
namespace {

bool is_built() { return !examine_fabric("").empty(); }

TEST(Fabric, refuses_a_provider_that_is_not_there) {
  const auto provider = make_fabric_provider({.provider = "nonesuch"});
  ASSERT_FALSE(provider.ok());
  EXPECT_EQ(info(provider.error().code).name, is_built() ? "N002" : "N001");
}

TEST(Fabric, refuses_an_interface_that_is_not_there) {
  if (!is_built()) GTEST_SKIP() << "skipped: this build has no libfabric";
  const auto provider = make_fabric_provider({.interface = "nowhere0"});
  ASSERT_FALSE(provider.ok());
  EXPECT_EQ(provider.error().code, DiagCode::N013);
}

// The properties of libfabric 1.17 on which the choice of orderings relies.
TEST(Fabric, relies_on_what_providers_return_and_not_on_what_they_accept) {
  if (!is_built()) GTEST_SKIP() << "skipped: this build has no libfabric";
  for (const FabricOffer& offer : examine_fabric("")) {
    if (!offer.is_there || offer.provider == "verbs;ofi_rxm") continue;
    EXPECT_TRUE(offer.asked.fence);
    if (offer.provider == "sockets") {
      EXPECT_TRUE(offer.given.fence);
    } else if (offer.is_tested) {
      EXPECT_FALSE(offer.given.fence) << offer.provider << " accepts the flag and ignores it";
    }
    if (offer.provider == "tcp;ofi_rxm") {
      EXPECT_TRUE(offer.given.in_order);
      EXPECT_TRUE(offer.given.target_progress);
    }
  }
  const auto unordered = make_fabric_provider({.provider = "shm", .ask_order = false});
  if (unordered.ok()) {
    EXPECT_FALSE((*unordered)->given().in_order);
  }
}

// A hostile sender could omit the check of descriptors. The receiver's provider must therefore
// limit each write to registered memory.
TEST(Fabric, lets_nobody_write_outside_of_what_is_registered) {
  if (!is_built()) GTEST_SKIP() << "skipped: this build has no libfabric";
  constexpr std::size_t kSize = 4096;
  std::vector<std::byte> near(kSize, std::byte{0xee});
  std::vector<std::byte> far(3 * kSize, std::byte{0});  // the middle third is registered
  auto sender = make_fabric_provider({.interface = "lo"});
  auto receiver = make_fabric_provider({.interface = "lo"});
  ASSERT_TRUE(sender.ok() && receiver.ok());
  const std::array own = {Region{.bytes = near}};
  const std::array theirs = {Region{.bytes = std::span(far).subspan(kSize, kSize)}};
  const auto one = (*sender)->expose(own);
  const auto other = (*receiver)->expose(theirs);
  ASSERT_TRUE(one.ok() && other.ok());
  const std::array contacts = {*one, *other};
  ASSERT_TRUE((*sender)->connect(contacts).ok() && (*receiver)->connect(contacts).ok());
  const auto try_write = [&](std::int64_t offset) {
    bool is_posted = false;
    std::vector<Token> completed;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
    while (completed.empty() && std::chrono::steady_clock::now() < end) {
      if (!is_posted) {
        const auto posted = (*sender)->post(
            Write{.peer = 1, .destination = {.offset = offset}, .bytes = 64, .token = 7});
        if (!posted.ok()) return false;
        is_posted = *posted == Posted::Yes;
      }
      if (!(*sender)->turn(completed).ok()) return false;
      std::vector<Token> nothing;
      (void)(*receiver)->turn(nothing).ok();
    }
    return !completed.empty();
  };
  EXPECT_TRUE(try_write(kSize - 64));
  EXPECT_EQ(far[2 * kSize - 1], std::byte{0xee});
  EXPECT_FALSE(try_write(kSize - 32));
  const auto is_clean = [](std::byte byte) { return byte == std::byte{0}; };
  EXPECT_TRUE(std::all_of(far.begin() + 2 * kSize, far.end(), is_clean));
  EXPECT_TRUE(std::all_of(far.begin(), far.begin() + kSize, is_clean));
}

TEST(Fabric, names_the_rank_that_is_gone) {
  const TransportError lost{
      .kind = Failure::PeerLost, .rank = 0, .peer = 1, .what = "Connection reset by peer"};
  EXPECT_EQ(to_diag(lost).code, DiagCode::N021);
  EXPECT_EQ(render_message(to_diag(lost)), "rank 0 lost rank 1: Connection reset by peer");
  if (!is_built()) GTEST_SKIP() << "skipped: this build has no libfabric";
  test::run_group(
      {.ranks = {0, 1},
       .endpoint = {.ranks = 2, .limit = std::chrono::milliseconds(500)},
       .meeting = {.address = test::new_address()},
       .sizes = {4096, 64},
       .make = [] { return make_fabric_provider({.interface = "lo"}); },
       .one_proxy = false},
      [](test::RankEnd& end) {
        const Transfer transfer{.source = {}, .destination = {}, .bytes = 64};
        if (end.rank == 0) {
          ASSERT_TRUE(end.endpoint->put(1, transfer).ok());
          ASSERT_TRUE(end.endpoint->quiet(1).ok());
        }
        end.meet();
        if (end.rank == 1) {
          end.proxy->stop();  // as if the process hung: from here on, puts to it never arrive
        }
        end.meet();
        if (end.rank == 1) return;
        const auto begin = std::chrono::steady_clock::now();
        ASSERT_TRUE(end.endpoint->put(1, transfer).ok());
        const auto over = end.endpoint->quiet(1);
        ASSERT_FALSE(over.ok());
        EXPECT_EQ(over.error().rank, 0);
        EXPECT_EQ(over.error().peer, 1);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
      });
}

}  // namespace
}  // namespace harpe::transport
