#include "exec/cuda/signals/device/enqueue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "transport/ring.h"

// The kernels' side of a ring, run by host threads, and the ring's real reader.
namespace harpe::device {
namespace {

using std::chrono::steady_clock;
using transport::Ring;
using transport::Words;

class HostAccess {
 public:
  explicit HostAccess(steady_clock::duration limit) : end_(steady_clock::now() + limit) {}

  static std::uint64_t take(std::uint64_t* head) { return std::atomic_ref(*head).fetch_add(1); }
  static std::uint64_t load_known(std::uint64_t* known) { return std::atomic_ref(*known).load(); }
  static void store_known(std::uint64_t* known, std::uint64_t taken) {
    std::atomic_ref(*known).store(taken);
  }
  static std::uint64_t load_taken(const std::uint64_t* taken) {
    return std::atomic_ref(*const_cast<std::uint64_t*>(taken)).load();
  }
  static void store(std::uint64_t* word, std::uint64_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_relaxed);
  }
  static void publish(std::uint64_t* word, std::uint64_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  [[nodiscard]] bool keep_waiting(std::uint64_t /*ticket*/, std::uint64_t /*taken*/) const {
    std::this_thread::yield();
    return steady_clock::now() < end_;
  }

 private:
  steady_clock::time_point end_;
};

struct alignas(64) Line {
  std::byte bytes[64];
};

// A ring, and the state that its writers on a GPU keep.
struct Shared {
  explicit Shared(std::size_t capacity)
      : memory(Ring::bytes_for(capacity) / sizeof(Line)),
        ring(capacity, std::as_writable_bytes(std::span(memory))),
        view{.slots = reinterpret_cast<transport::RingSlot*>(memory.data()),
             .taken = reinterpret_cast<const std::uint64_t*>(memory.data() + capacity),
             .head = &head,
             .known = &known,
             .capacity = capacity} {}

  [[nodiscard]] bool push(std::uint64_t writer, std::uint64_t number,
                          std::chrono::milliseconds limit = std::chrono::milliseconds(60'000)) {
    std::uint64_t words[transport::kDescriptorWords] = {number << 1};
    for (int at = 1; at < transport::kDescriptorWords; ++at) words[at] = writer << 32 | number;
    HostAccess access(limit);
    return enqueue(view, words, access);
  }

  std::vector<Line> memory;
  std::uint64_t head = 0;
  std::uint64_t known = 0;
  Ring ring;
  RingView view;
};

TEST(Enqueue, is_read_in_order_over_many_laps) {
  Shared shared(4);
  EXPECT_FALSE(shared.ring.pop());
  for (std::uint64_t number = 0; number < 23; ++number) {
    ASSERT_TRUE(shared.push(7, number));
    EXPECT_EQ(shared.ring.reserved(), number + 1);
    const std::optional<Words> words = shared.ring.pop();
    ASSERT_TRUE(words);
    EXPECT_EQ((*words)[0] >> 1, number);
    for (std::size_t at = 1; at < words->size(); ++at) EXPECT_EQ((*words)[at], 7ULL << 32 | number);
    EXPECT_FALSE(shared.ring.pop());
    EXPECT_EQ(shared.ring.taken(), number + 1);
  }
}

TEST(Enqueue, waits_for_room_and_gives_up_in_time) {
  Shared shared(2);
  EXPECT_TRUE(shared.push(0, 0));
  EXPECT_TRUE(shared.push(0, 1));
  EXPECT_FALSE(shared.push(0, 2, std::chrono::milliseconds(20)));
  EXPECT_TRUE(shared.ring.pop());
  EXPECT_TRUE(shared.ring.pop());
  EXPECT_FALSE(shared.ring.pop()) << "the slot of who gave up stays empty";
  Shared other(2);
  EXPECT_TRUE(other.push(0, 0));
  EXPECT_TRUE(other.push(0, 1));
  std::jthread late([&] { EXPECT_TRUE(other.push(0, 2)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ((*other.ring.pop())[1], 0U);
  late.join();
  EXPECT_EQ((*other.ring.pop())[1], 1U);
  EXPECT_EQ((*other.ring.pop())[1], 2U);
}

// An epoch ends behind everything published before its end, even behind slots still unwritten.
TEST(Enqueue, counts_what_is_there_behind_what_is_not) {
  Shared shared(8);
  EXPECT_EQ(shared.ring.reserved(), 0U);
  EXPECT_TRUE(shared.push(0, 0));
  shared.head += 2;  // two writers reserved slots
  EXPECT_TRUE(shared.push(0, 3));
  EXPECT_EQ(shared.ring.reserved(), 4U);
  EXPECT_TRUE(shared.ring.pop());
  EXPECT_FALSE(shared.ring.pop());
  EXPECT_EQ(shared.ring.reserved(), 4U);
}

TEST(Enqueue, has_many_writers) {
  constexpr std::uint64_t kWriters = 4;
  constexpr std::uint64_t kEach = 5'000;
  Shared shared(8);
  std::vector<std::jthread> writers;
  for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&shared, writer] {
      for (std::uint64_t number = 0; number < kEach; ++number) {
        ASSERT_TRUE(shared.push(writer, number));
      }
    });
  }
  std::vector<std::uint64_t> next(kWriters, 0);
  const auto end = steady_clock::now() + std::chrono::seconds(60);
  for (std::uint64_t count = 0; count < kWriters * kEach;) {
    const std::optional<Words> words = shared.ring.pop();
    if (!words) {
      ASSERT_LT(steady_clock::now(), end);
      std::this_thread::yield();
      continue;
    }
    ++count;
    const std::uint64_t writer = (*words)[1] >> 32;
    ASSERT_LT(writer, kWriters);
    for (std::size_t at = 2; at < words->size(); ++at) ASSERT_EQ((*words)[at], (*words)[1]);
    ASSERT_EQ((*words)[1] & 0xffffffff, next[writer]++);
  }
}

}  // namespace
}  // namespace harpe::device
