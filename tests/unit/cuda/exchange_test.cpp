#include "measure/baselines/exchange.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace harpe::library {
namespace {

using Numbers = std::vector<std::uint16_t>;

constexpr int kRanks = 3;

template <class T>
cuda::DeviceAddress address_of(const std::vector<T>& values) {
  return reinterpret_cast<cuda::DeviceAddress>(values.data());
}

// Moves the rows on the host.
void move_rows(const Rows& rows, std::size_t loop = 0, std::int64_t to = 0, std::int64_t from = 0) {
  if (loop == rows.loops.size()) {
    std::memcpy(reinterpret_cast<std::byte*>(rows.to) + to,
                reinterpret_cast<const std::byte*>(rows.from) + from,
                static_cast<std::size_t>(rows.bytes));
    return;
  }
  const Rows::Loop& here = rows.loops[loop];
  for (std::int64_t i = 0; i < here.length; ++i) {
    move_rows(rows, loop + 1, to + i * here.to, from + i * here.from);
  }
}

// Exchanges the parts as NCCL does.
void exchange_all(const std::vector<Exchanged>& tensors) {
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      const std::int64_t part = tensors[0].part();
      std::memcpy(
          reinterpret_cast<std::byte*>(tensors[static_cast<std::size_t>(to)].received) +
              from * part,
          reinterpret_cast<std::byte*>(tensors[static_cast<std::size_t>(from)].sent) + to * part,
          static_cast<std::size_t>(part));
    }
  }
}

// Separate memory for every rank and every step.
template <class T>
struct Memory {
  std::vector<Exchanged> tensors;
  std::vector<std::vector<T>> held;

  explicit Memory(const Exchanged& shape) {
    held.reserve(4 * kRanks);
    const auto reserve = [&] {
      return address_of(
          held.emplace_back(static_cast<std::size_t>(shape.bytes()) / sizeof(T), T(-1)));
    };
    for (int rank = 0; rank < kRanks; ++rank) {
      Exchanged t = shape;
      t.own = reserve();
      t.sent = reserve();
      t.received = reserve();
      t.whole = reserve();
      tensors.push_back(t);
    }
  }
  T* at(cuda::DeviceAddress address) { return reinterpret_cast<T*>(address); }
};

// The value of element (b, position, head, column).
std::uint16_t value_at(std::int64_t b, std::int64_t position, std::int64_t head,
                       std::int64_t column) {
  return static_cast<std::uint16_t>(b * 20'000 + position * 1'000 + head * 100 + column);
}

class Heads : public testing::TestWithParam<std::int64_t> {};

TEST_P(Heads, come_for_positions_and_go_back) {
  const std::int64_t batch = GetParam();
  constexpr std::int64_t kRows = 4;
  constexpr std::int64_t kHeads = 2;
  constexpr std::int64_t kColumns = 8;
  Memory<std::uint16_t> memory(
      {.batch = batch, .rows = kRows, .piece = kHeads * kColumns * 2, .ranks = kRanks});
  for (int rank = 0; rank < kRanks; ++rank) {
    std::uint16_t* own = memory.at(memory.tensors[static_cast<std::size_t>(rank)].own);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t row = 0; row < kRows; ++row) {
        for (std::int64_t head = 0; head < kRanks * kHeads; ++head) {
          for (std::int64_t c = 0; c < kColumns; ++c) {
            *own++ = value_at(b, rank * kRows + row, head, c);
          }
        }
      }
    }
  }
  for (const Exchanged& t : memory.tensors) move_rows(t.by_rank(false));
  exchange_all(memory.tensors);
  for (const Exchanged& t : memory.tensors) move_rows(t.by_entry(false));
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::uint16_t* whole = memory.at(memory.tensors[static_cast<std::size_t>(rank)].whole);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t position = 0; position < kRanks * kRows; ++position) {
        for (std::int64_t head = 0; head < kHeads; ++head) {
          for (std::int64_t c = 0; c < kColumns; ++c) {
            ASSERT_EQ(*whole++, value_at(b, position, rank * kHeads + head, c));
          }
        }
      }
    }
  }
  std::vector<Numbers> before;
  for (Exchanged& t : memory.tensors) {
    std::uint16_t* const own = memory.at(t.own);
    const std::int64_t count = t.bytes() / 2;
    before.emplace_back(own, own + count);
    std::fill(own, own + count, std::uint16_t{0});
    std::uint16_t* const sent = memory.at(t.sent);
    std::fill(sent, sent + count, std::uint16_t{0});
  }
  for (const Exchanged& t : memory.tensors) move_rows(t.by_entry(true));
  exchange_all(memory.tensors);
  for (const Exchanged& t : memory.tensors) move_rows(t.by_rank(true));
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const std::uint16_t* const own = memory.at(memory.tensors[rank].own);
    EXPECT_EQ(Numbers(own, own + before[rank].size()), before[rank]);
  }
}

TEST_P(Heads, take_their_sums_along) {
  const std::int64_t batch = GetParam();
  constexpr std::int64_t kRows = 4;
  constexpr std::int64_t kHeads = 2;
  Memory<float> memory({.batch = batch,
                        .rows = 1,
                        .piece = kHeads * kRows * 4,
                        .ranks = kRanks,
                        .type = device::Element::F32});
  EXPECT_EQ(memory.tensors[0].count(), batch * kHeads * kRows);
  for (int rank = 0; rank < kRanks; ++rank) {
    float* own = memory.at(memory.tensors[static_cast<std::size_t>(rank)].own);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t head = 0; head < kRanks * kHeads; ++head) {
        for (std::int64_t row = 0; row < kRows; ++row) {
          *own++ = value_at(b, rank * kRows + row, head, 0);
        }
      }
    }
  }
  for (const Exchanged& t : memory.tensors) {
    move_rows(t.by_rank(false));
    // A single entry is already in the order of ranks.
    if (batch > 1) continue;
    EXPECT_EQ(std::memcmp(memory.at(t.own), memory.at(t.sent), static_cast<std::size_t>(t.bytes())),
              0);
  }
  exchange_all(memory.tensors);
  for (const Exchanged& t : memory.tensors) move_rows(by_head(t, kHeads));
  for (int rank = 0; rank < kRanks; ++rank) {
    const float* whole = memory.at(memory.tensors[static_cast<std::size_t>(rank)].whole);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t head = 0; head < kHeads; ++head) {
        for (std::int64_t position = 0; position < kRanks * kRows; ++position) {
          ASSERT_EQ(*whole++, value_at(b, position, rank * kHeads + head, 0));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, Heads, testing::Values(1, 2));

TEST(Shares, of_heads_need_as_many_of_each_kind) {
  Subject subject{.op = "attention_bwd", .seq = 12, .heads = 8, .kv_heads = 2, .head_dim = 64};
  const auto shares = share_heads(subject, 2);
  ASSERT_TRUE(shares.ok());
  EXPECT_EQ(shares->rows, 6);
  EXPECT_EQ(shares->heads, 4);
  EXPECT_EQ(shares->kv_heads, 1);
  EXPECT_FALSE(share_heads(subject, 4).ok());
  EXPECT_TRUE(share_positions(subject, 4).ok());
  subject.head_dim = 60;
  EXPECT_FALSE(share_positions(subject, 4).ok());
}

}  // namespace
}  // namespace harpe::library
