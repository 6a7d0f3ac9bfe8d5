#include "transport/endpoint.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/rank_group.h"
#include "transport/fabric_provider.h"
#include "transport/shared_provider.h"

namespace harpe::transport {
namespace endpoint_test {

using test::RankEnd;

Checked<std::unique_ptr<Provider>> shared() { return make_shared_provider(); }

class EveryProvider : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "shared") return;
    const auto provider = make();
    if (!provider.ok()) GTEST_SKIP() << "skipped: " << render(provider.error());
  }
  [[nodiscard]] static Checked<std::unique_ptr<Provider>> make() {
    if (std::string(GetParam()) == "shared") return shared();
    return make_fabric_provider({.provider = GetParam(), .interface = interface()});
  }
  // libfabric's older shared-memory provider has no interface.
  [[nodiscard]] static std::string interface() {
    return std::string(GetParam()) == "shm" ? "" : "lo";
  }
};

constexpr std::int64_t kBlock = 512;

// Runs each rank in a thread, with its own proxy.
void in_every_rank(const EndpointOptions& options, const std::vector<std::size_t>& sizes,
                   const test::MakeProvider& make, const std::function<void(RankEnd&)>& run) {
  std::vector<int> ranks(static_cast<std::size_t>(options.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  EXPECT_TRUE(test::run_group({.ranks = ranks,
                               .endpoint = options,
                               .meeting = {.address = test::new_address()},
                               .sizes = sizes,
                               .make = make,
                               .one_proxy = false},
                              run));
}

std::uint64_t& number_at(RankEnd& end, std::int64_t offset) {
  return end.at<std::uint64_t>(0, offset);
}

// Every rank puts a block to every other rank with a signal, and counts what it receives.
TEST_P(EveryProvider, brings_data_and_then_its_signal_to_every_rank) {
  constexpr int kRanks = 3;
  in_every_rank({.ranks = kRanks}, {2 * kRanks * kBlock, 64}, make, [](RankEnd& end) {
    const std::int64_t own = kRanks * kBlock;
    for (std::uint32_t epoch = 1; epoch <= 20; ++epoch) {
      number_at(end, own) = 1000 * epoch + static_cast<std::uint64_t>(end.rank);
      for (int peer = 0; peer < kRanks; ++peer) {
        const auto ticket = end.endpoint->put_signal(
            peer,
            {.source = {.offset = own},
             .destination = {.offset = end.rank * kBlock},
             .bytes = kBlock},
            {.word = {.region = 1, .offset = 4 * end.rank},
             .value = epoch,
             .follows = peer + 1 < kRanks ? Follows::Epoch : Follows::Nothing});
        ASSERT_TRUE(ticket.ok()) << render(to_diag(ticket.error()));
      }
      for (int peer = 0; peer < kRanks; ++peer) {
        const auto waited = end.endpoint->wait({.region = 1, .offset = 4 * peer}, epoch, peer);
        ASSERT_TRUE(waited.ok()) << render(to_diag(waited.error()));
        ASSERT_GE(number_at(end, peer * kBlock), 1000 * epoch + static_cast<std::uint64_t>(peer));
      }
      // The source is overwritten next, and blocks are read; so all puts must arrive first.
      ASSERT_TRUE(end.endpoint->quiet_all().ok());
      end.meet();
    }
  });
}

TEST_P(EveryProvider, adds_to_counters) {
  constexpr int kRanks = 3;
  constexpr std::uint32_t kEach = 50;
  in_every_rank({.ranks = kRanks}, {kBlock, 64}, make, [](RankEnd& end) {
    for (std::uint32_t at = 0; at < kEach; ++at) {
      const auto ticket = end.endpoint->signal(
          0, {.word = {.region = 1, .offset = 8}, .value = 1, .mode = SignalMode::Add});
      ASSERT_TRUE(ticket.ok()) << render(to_diag(ticket.error()));
    }
    ASSERT_TRUE(end.endpoint->quiet(0).ok());
    if (end.rank != 0) return;
    const auto waited = end.endpoint->wait({.region = 1, .offset = 8}, kRanks * kEach, 1);
    ASSERT_TRUE(waited.ok()) << render(to_diag(waited.error()));
    EXPECT_EQ(end.endpoint->read({.region = 1, .offset = 8}), kRanks * kEach);
  });
}

TEST_P(EveryProvider, may_write_its_sources_after_a_flush) {
  in_every_rank({.ranks = 2, .policy = std::nullopt}, {64 * kBlock, 64}, make, [](RankEnd& end) {
    if (end.rank == 1) {
      ASSERT_TRUE(end.endpoint->wait({.region = 1}, 1, 0).ok());
      for (int at = 0; at < 32; ++at) {
        ASSERT_EQ(number_at(end, at * kBlock), static_cast<std::uint64_t>(at + 7));
      }
      return;
    }
    for (int at = 0; at < 32; ++at) {
      number_at(end, 40 * kBlock) = static_cast<std::uint64_t>(at + 7);
      ASSERT_TRUE(end.endpoint
                      ->put(1, {.source = {.offset = 40 * kBlock},
                                .destination = {.offset = at * kBlock},
                                .bytes = kBlock})
                      .ok());
      ASSERT_TRUE(end.endpoint->flush(1).ok());
    }
    ASSERT_TRUE(end.endpoint->signal(1, {.word = {.region = 1}, .value = 1}).ok());
    ASSERT_TRUE(end.endpoint->quiet(1).ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Transport, EveryProvider,
                         testing::Values("shared", "tcp;ofi_rxm", "shm", "sockets"),
                         [](const auto& with) {
                           std::string name = with.param;
                           std::erase_if(name, [](char c) { return c == ';' || c == '_'; });
                           return name;
                         });

TEST(Endpoint, refuses_memory_that_the_other_rank_did_not_register) {
  in_every_rank({.ranks = 2}, {kBlock, 64}, shared, [](RankEnd& end) {
    const auto ticket =
        end.endpoint->put(1, {.source = {}, .destination = {.offset = 1}, .bytes = kBlock});
    ASSERT_FALSE(ticket.ok());
    EXPECT_EQ(render_message(to_diag(ticket.error())),
              "rank " + std::to_string(end.rank) +
                  " refuses a descriptor for memory of rank 1: a destination of 512 bytes at 1 of "
                  "region 0, which has 512");
    EXPECT_FALSE(end.endpoint->signal(1, {.word = {.region = 2}}).ok());
    EXPECT_FALSE(end.endpoint->error());  // refused before it reached the ring
  });
}

TEST(Endpoint, waits_no_longer_than_its_limit_and_names_whom_for_what) {
  in_every_rank({.ranks = 2, .limit = std::chrono::milliseconds(150)}, {kBlock, 64}, shared,
                [](RankEnd& end) {
                  const auto waited = end.endpoint->wait({.region = 1, .offset = 12}, 4, 1);
                  ASSERT_FALSE(waited.ok());
                  EXPECT_EQ(waited.error().what, "signal 3 of region 1 to be 4, saw 0,");
                  EXPECT_EQ(to_diag(waited.error()).code, DiagCode::N020);
                  EXPECT_GE(waited.error().elapsed.count(), 150);
                });
}

TEST(Endpoint, refuses_contacts_that_are_none) {
  EXPECT_FALSE(parse_contact({}));
  const Contact contact{.sizes = {16, 32}, .address = Blob(5, std::byte{7})};
  Blob bytes = print(contact);
  EXPECT_EQ(parse_contact(bytes)->sizes, contact.sizes);
  EXPECT_EQ(parse_contact(bytes)->address, contact.address);
  bytes[0] = std::byte{200};
  EXPECT_FALSE(parse_contact(bytes));
  bytes[0] = std::byte{2};
  bytes[15] = std::byte{0xff};  // a negative size
  EXPECT_FALSE(parse_contact(bytes));
}

}  // namespace endpoint_test
}  // namespace harpe::transport
