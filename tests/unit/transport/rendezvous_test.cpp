#include "transport/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/support/rank_group.h"
#include "transport/interface.h"

namespace harpe::transport {
namespace {

using test::new_address;

constexpr std::chrono::milliseconds kSoon{1'500};

Blob blob_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Meeting meeting(const std::string& address, int rank, int ranks, const std::string& secret) {
  return {.address = address, .secret = secret, .rank = rank, .ranks = ranks, .limit = kSoon};
}

TEST(Rendezvous, gives_every_rank_what_every_rank_gave) {
  const std::string address = new_address();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      const auto met = Rendezvous::meet(meeting(address, rank, 4, "open sesame"));
      ASSERT_TRUE(met.ok()) << render(met.error());
      for (int round = 0; round < 3; ++round) {
        const auto all = (*met)->all_gather(blob_of(std::to_string(10 * round + rank)));
        ASSERT_TRUE(all.ok()) << render(all.error());
        for (int other = 0; other < 4; ++other) {
          EXPECT_EQ((*all)[static_cast<std::size_t>(other)],
                    blob_of(std::to_string(10 * round + other)));
        }
      }
    });
  }
}

// The refusals of rank 0 and of one other rank.
struct Said {
  std::optional<Diag> host;
  std::optional<Diag> guest;
};
Said meet_two(const Meeting& host, const Meeting& guest) {
  Said said;
  {
    const std::jthread other([&] {
      const auto met = Rendezvous::meet(guest);
      if (!met.ok()) said.guest = met.error();
    });
    const auto met = Rendezvous::meet(host);
    if (!met.ok()) said.host = met.error();
  }
  return said;
}

TEST(Rendezvous, refuses_by_name_who_does_not_know_the_secret) {
  const std::string address = new_address();
  const Said said = meet_two(meeting(address, 0, 2, "one"), meeting(address, 1, 2, "another"));
  ASSERT_TRUE(said.guest && said.host);
  EXPECT_EQ(said.guest->code, DiagCode::N011);
  EXPECT_EQ(render_message(*said.guest),
            "rank 1 at `" + address + "` refuses rank 0: it does not have the secret");
  EXPECT_EQ(said.host->code, DiagCode::N010);
  ASSERT_EQ(said.host->notes.size(), 1U);
  EXPECT_EQ(said.host->notes[0], "rank 0 at `" + address +
                                     "` refuses rank 1 from this machine: it does not have the "
                                     "secret");
}

TEST(Rendezvous, refuses_who_knows_of_another_number_of_ranks) {
  const std::string address = new_address();
  const Said said = meet_two(meeting(address, 0, 2, "s"), meeting(address, 1, 3, "s"));
  ASSERT_TRUE(said.guest && said.host);
  EXPECT_EQ(said.guest->code, DiagCode::N010);
  EXPECT_EQ(said.host->code, DiagCode::N014);
  EXPECT_EQ(render_message(*said.host),
            "rank 0 at `" + address +
                "` refuses rank 1 from this machine: it expects 3 ranks, and there are 2");
}

// A stranger without the secret causes a warning at once, and the others still meet.
TEST(Rendezvous, goes_on_without_strangers) {
  const std::string address = new_address();
  std::unique_ptr<Rendezvous> host;
  std::vector<std::string> warned;
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      Meeting own = meeting(address, 0, 3, "s");
      own.warn = [&](const Diag& diag) { warned.push_back(render_message(diag)); };
      auto met = Rendezvous::meet(own);
      ASSERT_TRUE(met.ok()) << render(met.error());
      host = std::move(met).value();
    });
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    {  // sends something else and leaves
      const auto stranger = Socket::connect(address, deadline);
      ASSERT_TRUE(stranger.ok());
      ASSERT_TRUE(stranger->send(blob_of(std::string(200, 'x')), deadline).ok());
    }
    EXPECT_EQ(Rendezvous::meet(meeting(address, 1, 3, "other")).error().code, DiagCode::N011);
    const auto first = Rendezvous::meet(meeting(address, 1, 3, "s"));
    ASSERT_TRUE(first.ok());
    const auto second = Rendezvous::meet(meeting(address, 2, 3, "s"));
    ASSERT_TRUE(second.ok());
  }
  ASSERT_TRUE(host);
  const std::string refuses = "rank 0 at `" + address + "` refuses ";
  EXPECT_THAT(warned, testing::ElementsAre(
                          refuses + "a process at this machine: it did not send the greeting of "
                                    "a rank of harpe",
                          refuses + "rank 1 from this machine: it does not have the secret"));
}

// A rank that joins twice with the secret means that another rank never joins. All end without
// waiting for the limit, a minute here.
TEST(Rendezvous, ends_at_once_where_a_rank_comes_twice) {
  const std::string address = new_address();
  std::optional<Diag> of_host;
  std::optional<Diag> of_first;
  const auto begun = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      Meeting own = meeting(address, 0, 3, "s");
      own.limit = std::chrono::minutes(1);
      const auto met = Rendezvous::meet(own);
      if (!met.ok()) of_host = met.error();
    });
    auto first = Rendezvous::meet(meeting(address, 1, 3, "s"));
    ASSERT_TRUE(first.ok());
    const auto twice = Rendezvous::meet(meeting(address, 1, 3, "s"));
    ASSERT_FALSE(twice.ok());
    EXPECT_EQ(twice.error().code, DiagCode::N010);
    const auto gathered = (*first)->all_gather({});
    if (!gathered.ok()) of_first = gathered.error();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  ASSERT_TRUE(of_host);
  EXPECT_EQ(render_message(*of_host), "rank 0 at `" + address +
                                          "` refuses rank 1 from this machine: that rank is here "
                                          "already");
  EXPECT_EQ(of_host->code, DiagCode::N014);
  ASSERT_TRUE(of_first);
  EXPECT_EQ(of_first->code, DiagCode::N010);
}

struct OldHello {
  std::uint32_t mark = 0x4850524e;
  std::uint32_t version = 0;
  std::int32_t rank = 1;
  std::int32_t ranks = 2;
  std::array<std::byte, 32> nonce{};
};

TEST(Rendezvous, refuses_who_speaks_another_version) {
  const std::string address = new_address();
  std::optional<Diag> said;
  {
    const std::jthread host([&] {
      const auto met = Rendezvous::meet(meeting(address, 0, 2, "s"));
      if (!met.ok()) said = met.error();
    });
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    const auto guest = Socket::connect(address, deadline);
    ASSERT_TRUE(guest.ok());
    const OldHello hello;
    ASSERT_TRUE(guest->send(std::as_bytes(std::span(&hello, 1)), deadline).ok());
    std::array<std::uint32_t, 3> answer{};  // mark, version, judgement
    ASSERT_TRUE(guest->receive(std::as_writable_bytes(std::span(answer)), deadline).ok());
    EXPECT_EQ(answer[1], kRendezvousVersion);
  }
  ASSERT_TRUE(said);
  ASSERT_EQ(said->notes.size(), 1U);
  EXPECT_EQ(said->notes[0], "rank 0 at `" + address +
                                "` refuses rank 1 from this machine: it uses protocol version 0, "
                                "not 3");
  const Diag same = make_diag(DiagCode::N012);
  EXPECT_EQ(info(same.code).name, "N012");
}

TEST(Rendezvous, listens_on_the_interface_that_is_named) {
  EXPECT_EQ(*address_on("lo"), "127.0.0.1");
  const auto none = address_on("nowhere0");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, DiagCode::N013);
  Meeting lost = meeting("127.0.0.1:0", 0, 2, "s");
  lost.interface = "nowhere0";
  const auto met = Rendezvous::meet(lost);
  ASSERT_FALSE(met.ok());
  EXPECT_EQ(met.error().code, DiagCode::N013);
}

TEST(Sealed, notices_a_message_that_was_changed_repeated_or_turned_back) {
  const std::string address = new_address();
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  const auto listener = Socket::listen(address);
  ASSERT_TRUE(listener.ok());
  const auto connect = [&](const Proof& one, const Proof& other, bool is_host) {
    auto near = Socket::connect(address, deadline);
    auto far = listener->accept(deadline);
    EXPECT_TRUE(near.ok() && far.ok());
    return std::pair(Sealed(std::move(near).value(), one, false),
                     Sealed(std::move(far).value(), other, is_host));
  };
  Proof key{};
  Proof other_key{};
  other_key[3] = std::byte{1};
  auto same = connect(key, key, true);
  ASSERT_TRUE(same.first.send(blob_of("payload"), deadline).ok());
  const auto read = same.second.receive(deadline);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, blob_of("payload"));
  auto other = connect(key, other_key, true);
  ASSERT_TRUE(other.first.send(blob_of("payload"), deadline).ok());
  EXPECT_FALSE(other.second.receive(deadline).ok());
  auto guests = connect(key, key, false);  // both act as guests
  ASSERT_TRUE(guests.first.send(blob_of("payload"), deadline).ok());
  EXPECT_FALSE(guests.second.receive(deadline).ok());
}

}  // namespace
}  // namespace harpe::transport
