#include "transport/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace harpe::transport {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using Met = Checked<std::unique_ptr<Rendezvous>>;

std::string address_of(const std::string& name) {
  return "unix:@harpe-test-" + name + "-" + std::to_string(::getpid());
}

Blob blob_of(int rank) { return Blob(static_cast<std::size_t>(rank * 100), std::byte(rank)); }

// Gathers three times in every rank, each in a thread.
void expect_gathered(const std::string& address, int ranks) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([=] {
      const Met met = Rendezvous::meet({.address = address, .rank = rank, .ranks = ranks});
      ASSERT_TRUE(met.ok()) << render(met.error());
      for (int round = 0; round < 3; ++round) {
        const auto all = (*met)->all_gather(blob_of(rank + round));
        ASSERT_TRUE(all.ok()) << render(all.error());
        ASSERT_EQ(all->size(), static_cast<std::size_t>(ranks));
        for (int of = 0; of < ranks; ++of) {
          EXPECT_EQ((*all)[static_cast<std::size_t>(of)], blob_of(of + round));
        }
      }
    });
  }
}

TEST(RendezvousNews, gathers_what_every_rank_gives) {
  for (const int ranks : {1, 2, 5}) expect_gathered(address_of("gather"), ranks);
}

TEST(RendezvousNews, meets_on_the_network_too) { expect_gathered("127.0.0.1:29731", 3); }

TEST(RendezvousNews, says_who_did_not_come_and_where) {
  const Met host =
      Rendezvous::meet({.address = address_of("alone"), .rank = 0, .ranks = 3, .limit = 50ms});
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(render_message(host.error()),
            "rank 0 cannot reach the other ranks at `" + address_of("alone") +
                "`: 2 of 3 ranks did not connect, ranks 1, 2: the time is over");
  const Met guest =
      Rendezvous::meet({.address = address_of("nobody"), .rank = 2, .ranks = 3, .limit = 50ms});
  ASSERT_FALSE(guest.ok());
  EXPECT_EQ(render_message(guest.error()), "rank 2 cannot reach the other ranks at `" +
                                               address_of("nobody") +
                                               "`: "
                                               "rank 0 is not there: connect: Connection refused");
}

TEST(RendezvousNews, says_which_rank_is_gone) {
  std::jthread guest([] {
    const Met met = Rendezvous::meet({.address = address_of("gone"), .rank = 1, .ranks = 2});
    EXPECT_TRUE(met.ok());
  });
  const Met host = Rendezvous::meet({.address = address_of("gone"), .rank = 0, .ranks = 2});
  ASSERT_TRUE(host.ok());
  guest.join();
  const auto all = (*host)->all_gather({});
  ASSERT_FALSE(all.ok());
  EXPECT_THAT(render_message(all.error()), testing::EndsWith("rank 1 is gone"));
}

// A rank joins and exits before all have joined: the others stop waiting at once.
TEST(RendezvousNews, says_who_is_gone_before_all_have_come) {
  const std::string address = address_of("early-end");
  const auto start = std::chrono::steady_clock::now();
  std::jthread guest([&] {
    Met met = Rendezvous::meet({.address = address, .rank = 2, .ranks = 4});
    ASSERT_TRUE(met.ok());
    std::this_thread::sleep_for(500ms);
  });
  std::jthread other([&] {
    const Met met = Rendezvous::meet({.address = address, .rank = 3, .ranks = 4});
    ASSERT_TRUE(met.ok());
    const auto all = (*met)->all_gather({});
    ASSERT_FALSE(all.ok());
    EXPECT_THAT(render_message(all.error()), testing::EndsWith("rank 2 is gone"));
  });
  const Met host = Rendezvous::meet({.address = address, .rank = 0, .ranks = 4});
  ASSERT_FALSE(host.ok());
  EXPECT_THAT(render_message(host.error()), testing::EndsWith("rank 2 is gone"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

using Member = std::function<void(Rendezvous&)>;

// Runs each member in a thread, in the order of ranks; its connections close when it returns.
void with_members(const std::string& address, const std::vector<Member>& members) {
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const Met met = Rendezvous::meet({.address = address,
                                        .rank = static_cast<int>(rank),
                                        .ranks = static_cast<int>(members.size())});
      ASSERT_TRUE(met.ok()) << render(met.error());
      members[rank](**met);
    });
  }
}

// Rank 2 exits while rank 1 is busy. No rank waits for rank 1, and all ranks name rank 2.
TEST(RendezvousNews, tells_all_who_is_gone_though_another_is_busy) {
  for (const std::string& address : {address_of("busy"), std::string("127.0.0.1:29733")}) {
    const auto start = std::chrono::steady_clock::now();
    std::atomic<bool> is_known = false;
    const auto expect_named = [&](Rendezvous& bootstrap, const std::string& reason) {
      const auto all = bootstrap.all_gather({});
      ASSERT_FALSE(all.ok());
      EXPECT_THAT(render_message(all.error()), testing::EndsWith(reason));
      EXPECT_EQ(bootstrap.lost(), 2);
      EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
    };
    with_members(address, {[&](Rendezvous& host) {
                             expect_named(host, "rank 2 is gone");
                             is_known = true;
                           },
                           [&](Rendezvous& busy) {
                             while (!is_known) std::this_thread::sleep_for(5ms);
                             std::this_thread::sleep_for(50ms);  // by now rank 0 has exited too
                             expect_named(busy, "rank 2 is gone");
                           },
                           [](Rendezvous&) {},
                           [&](Rendezvous& other) { expect_named(other, "rank 2 is gone"); }});
  }
}

TEST(RendezvousNews, hears_between_exchanges_who_is_gone) {
  const auto expect_news = [](Rendezvous& bootstrap) {
    EXPECT_EQ(bootstrap.listen(5s), (RankNews{.rank = 1, .is_gone = true}));
    EXPECT_FALSE(bootstrap.listen(10ms).has_value()) << "once";
    const auto left = bootstrap.gather_left(blob_of(3), 5s, 60s);
    ASSERT_EQ(left.size(), 4U);
    EXPECT_FALSE(left[1].has_value());
    EXPECT_TRUE(left[0] && left[2] && left[3]);
  };
  with_members(address_of("news"), {expect_news, [](Rendezvous&) {}, expect_news, expect_news});
}

// An early contribution is not news. A late rank finds that rank 0 has gone.
TEST(RendezvousNews, waits_for_who_is_late_no_longer_than_it_is_asked_to) {
  with_members(address_of("early"), {[](Rendezvous& host) {
                                       std::this_thread::sleep_for(50ms);
                                       EXPECT_FALSE(host.listen(20ms).has_value());
                                       const auto left = host.gather_left(blob_of(1), 100ms, 60s);
                                       EXPECT_TRUE(left[1].has_value());
                                       EXPECT_FALSE(left[2].has_value());
                                       EXPECT_EQ(host.lost(), 2);
                                     },
                                     [](Rendezvous& early) {
                                       const auto left = early.gather_left(blob_of(2), 5s, 60s);
                                       EXPECT_TRUE(left[0].has_value());
                                       EXPECT_FALSE(left[2].has_value());
                                     },
                                     [](Rendezvous& late) {
                                       EXPECT_EQ(late.listen(5s),
                                                 (RankNews{.rank = 0, .is_gone = true}));
                                     }});
}

TEST(RendezvousNews, passes_on_that_a_rank_has_stopped) {
  const auto answer = [](Rendezvous& bootstrap) {
    EXPECT_EQ(bootstrap.listen(5s), RankNews{.rank = 2});
    EXPECT_FALSE(bootstrap.lost().has_value());
    for (const auto& blob : bootstrap.gather_left(blob_of(1), 5s, 60s))
      EXPECT_TRUE(blob.has_value());
  };
  const auto stop = [](Rendezvous& bootstrap) {
    bootstrap.tell_stopped();
    for (const auto& blob : bootstrap.gather_left(blob_of(1), 1s, 60s))
      EXPECT_TRUE(blob.has_value());
  };
  with_members(address_of("stopped"), {answer, answer, stop, answer});
}

// Rank 0 itself waits for nothing: it asks the other ranks, and one of them reports the stop.
TEST(RendezvousNews, passes_it_on_while_it_asks_the_others) {
  const auto start = std::chrono::steady_clock::now();
  with_members(address_of("asking"),
               {[](Rendezvous& host) {
                  const auto left = host.gather_left(blob_of(1), 60s, 60s);
                  EXPECT_TRUE(left[1] && left[2]);
                  EXPECT_FALSE(left[3].has_value());
                },
                [](Rendezvous& told) {
                  EXPECT_EQ(told.listen(5s), RankNews{.rank = 2});
                  EXPECT_TRUE(told.gather_left(blob_of(1), 5s, 60s)[2].has_value());
                },
                [](Rendezvous& stopped) {
                  stopped.tell_stopped();
                  EXPECT_TRUE(stopped.gather_left(blob_of(1), 5s, 60s)[0].has_value());
                },
                [](Rendezvous&) { std::this_thread::sleep_for(3s); }});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s) << "who says nothing is not waited for";
}

// A hanging rank differs from a busy one: the busy one still reports.
TEST(RendezvousNews, waits_for_who_is_heard_of_and_not_for_who_is_silent) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<bool> is_over = false;
  const auto gather = [&](Rendezvous& done) {
    const auto left = done.gather_left(blob_of(1), 60s, 1s);
    EXPECT_TRUE(left[0] && left[1] && left[2]);
    EXPECT_FALSE(left[3].has_value());
  };
  with_members(address_of("silent"), {[&](Rendezvous& host) {
                                        gather(host);
                                        EXPECT_EQ(host.lost(), 3);
                                        is_over = true;
                                      },
                                      gather,
                                      [&](Rendezvous& busy) {
                                        EXPECT_FALSE(busy.listen(2500ms).has_value());
                                        gather(busy);
                                      },
                                      [&](Rendezvous&) {
                                        while (!is_over) std::this_thread::sleep_for(5ms);
                                      }});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

// Rank 0 may hang too.
TEST(RendezvousNews, does_not_wait_for_a_silent_rank_0) {
  std::atomic<bool> is_over = false;
  with_members(address_of("silent-host"), {[&](Rendezvous&) {
                                             while (!is_over) std::this_thread::sleep_for(5ms);
                                           },
                                           [&](Rendezvous& guest) {
                                             const auto left =
                                                 guest.gather_left(blob_of(1), 60s, 300ms);
                                             EXPECT_FALSE(left[0].has_value());
                                             EXPECT_EQ(guest.lost(), 0);
                                             is_over = true;
                                           }});
}

}  // namespace
}  // namespace harpe::transport
