#include "transport/ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace harpe::transport {
namespace {

Words numbered(std::uint64_t writer, std::uint64_t number) {
  Words words{};
  words[0] = number << 1;
  for (std::size_t at = 1; at < words.size(); ++at) words[at] = writer << 32 | number;
  return words;
}

Deadline in_ms(int count) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(count);
}

TEST(Ring, gives_back_in_order_over_many_laps) {
  Ring ring(4);
  EXPECT_FALSE(ring.pop());
  for (std::uint64_t number = 0; number < 23; ++number) {
    ASSERT_EQ(ring.try_push(numbered(0, number)), number);
    const auto words = ring.pop();
    ASSERT_TRUE(words);
    EXPECT_EQ((*words)[1], number);
    EXPECT_FALSE(ring.pop());
  }
}

TEST(Ring, takes_no_more_than_it_has_room_for) {
  Ring ring(2);
  EXPECT_TRUE(ring.try_push(numbered(0, 0)));
  EXPECT_TRUE(ring.try_push(numbered(0, 1)));
  EXPECT_FALSE(ring.try_push(numbered(0, 2)));
  EXPECT_TRUE(ring.pop());
  EXPECT_TRUE(ring.try_push(numbered(0, 3)));
}

TEST(Ring, waits_for_room_no_longer_than_it_is_told_and_takes_nothing_then) {
  Ring ring(1);
  ASSERT_TRUE(ring.push(numbered(0, 0), in_ms(1)));
  EXPECT_FALSE(ring.push(numbered(0, 1), in_ms(20)));
  EXPECT_EQ(ring.reserved(), 1U);
  EXPECT_TRUE(ring.pop());
  EXPECT_TRUE(ring.push(numbered(0, 2), in_ms(1000)));
}

// Every writer's descriptors arrive whole, once and in the writer's order, through a ring so small
// that writers constantly compete with each other and the reader.
TEST(Ring, has_many_writers) {
  constexpr std::uint64_t kWriters = 4;
  constexpr std::uint64_t kEach = 20'000;
  Ring ring(8);
  std::vector<std::jthread> writers;
  for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&ring, writer] {
      for (std::uint64_t number = 0; number < kEach; ++number) {
        ASSERT_TRUE(ring.push(numbered(writer, number), in_ms(60'000)));
      }
    });
  }
  std::vector<std::uint64_t> next(kWriters, 0);
  const Deadline end = in_ms(60'000);
  for (std::uint64_t count = 0; count < kWriters * kEach;) {
    const auto words = ring.pop();
    if (!words) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::yield();
      continue;
    }
    ++count;
    const std::uint64_t writer = (*words)[1] >> 32;
    ASSERT_LT(writer, kWriters);
    for (std::size_t at = 2; at < words->size(); ++at) ASSERT_EQ((*words)[at], (*words)[1]);
    ASSERT_EQ((*words)[1] & 0xffffffff, next[writer]);
    ASSERT_EQ((*words)[0] >> 1, next[writer]);
    ++next[writer];
  }
  EXPECT_FALSE(ring.pop());
}

}  // namespace
}  // namespace harpe::transport
