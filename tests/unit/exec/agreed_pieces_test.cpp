#include "exec/group/agreed_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "exec/group/tensor_heap.h"
#include "transport/local_exchange.h"

namespace harpe {
namespace {

using Piece = AgreedPieces::Piece;
using Pieces = std::vector<std::shared_ptr<AgreedPieces>>;

// Makes the pieces of all ranks, one thread per rank.
Pieces make_pieces(int ranks, std::int64_t bytes) {
  Pieces made(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  auto exchanges = transport::make_local_exchanges(ranks, std::chrono::seconds(20));
  for (std::size_t rank = 0; rank < made.size(); ++rank) {
    threads.emplace_back(
        [&, rank] { made[rank] = AgreedPieces::make(bytes, *exchanges[rank]).value(); });
  }
  threads.clear();
  return made;
}

// The offset, or -1.
std::int64_t offset_of(const std::optional<Piece>& piece) { return piece ? piece->offset : -1; }

TEST(AgreedPieces, is_taken_again_once_all_ranks_have_given_it_back) {
  const Pieces ranks = make_pieces(2, 1024);
  const auto first = ranks[0]->take(300);
  EXPECT_EQ(offset_of(first), 0);
  EXPECT_EQ(offset_of(ranks[1]->take(300)), 0);
  EXPECT_EQ(ranks[0]->held(), 300);
  ranks[0]->give_back(*first);  // rank 1 still holds its piece
  EXPECT_EQ(ranks[0]->held(), 0);
  const auto second = ranks[1]->take(300);
  EXPECT_EQ(offset_of(second), 512);
  EXPECT_EQ(offset_of(ranks[0]->take(300)), 512);
  EXPECT_EQ(ranks[0]->take(300), std::nullopt);  // 512 and 512 bytes of 1024 are taken
  EXPECT_EQ(ranks[1]->take(300), std::nullopt);
  for (const auto& each : ranks) each->give_back(*second);
  for (const auto& each : ranks) EXPECT_EQ(offset_of(each->take(300)), 512);
}

TEST(AgreedPieces, is_of_the_asked_length) {
  const Pieces ranks = make_pieces(1, 1024);
  const auto piece = ranks[0]->take(512);
  ranks[0]->give_back(*piece);
  EXPECT_EQ(offset_of(ranks[0]->take(256)), 512);
  EXPECT_EQ(offset_of(ranks[0]->take(512)), 0);
}

// All ranks take a piece and give it back.
Piece take_for_a_moment(const Pieces& ranks, std::int64_t bytes,
                        AgreedPieces::CaptureNumber capture = AgreedPieces::kNoCapture) {
  Piece taken;
  for (const auto& each : ranks) taken = each->take(bytes, capture).value();
  for (const auto& each : ranks) each->give_back(taken);
  return taken;
}

TEST(AgreedPieces, of_a_graph_are_taken_again_for_that_graph_only) {
  const Pieces ranks = make_pieces(2, 1024);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 1).offset, 0);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 1).offset, 0);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 2).offset, 256);
  EXPECT_EQ(take_for_a_moment(ranks, 256).offset, 512);
  EXPECT_EQ(take_for_a_moment(ranks, 256).offset, 512);
}

TEST(AgreedPieces, of_a_graph_are_free_once_all_ranks_release_them) {
  const Pieces ranks = make_pieces(2, 1024);
  const Piece first = take_for_a_moment(ranks, 256, 1);
  ranks[0]->release(first, 1);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 2).offset, 256);
  ranks[1]->release(first, 1);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 3).offset, 0);
  for (const auto& each : ranks) each->release(first, 1);  // graph 3 has it now
  EXPECT_EQ(take_for_a_moment(ranks, 256, 4).offset, 512);
  EXPECT_EQ(take_for_a_moment(ranks, 256).offset, 768);
  for (const auto& each : ranks) each->release(first, 3);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 5).offset, 0);
}

TEST(AgreedPieces, of_a_released_graph_are_free_once_they_are_given_back) {
  const Pieces ranks = make_pieces(1, 1024);
  const Piece held = ranks[0]->take(256, 1).value();
  ranks[0]->release(held, 1);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 2).offset, 256);
  ranks[0]->give_back(held);
  EXPECT_EQ(take_for_a_moment(ranks, 256, 3).offset, 0);
}

TEST(AgreedPieces, tell_who_is_ahead) {
  const Pieces ranks = make_pieces(2, 1024);
  EXPECT_FALSE(ranks[0]->is_ahead());
  static_cast<void>(ranks[0]->take(256));
  EXPECT_TRUE(ranks[0]->is_ahead());
  EXPECT_FALSE(ranks[1]->is_ahead()) << "it is behind";
  static_cast<void>(ranks[1]->take(256));
  EXPECT_FALSE(ranks[0]->is_ahead());
}

TEST(AgreedPieces, waits_for_who_is_far_behind) {
  const Pieces ranks = make_pieces(2, 0);
  for (std::uint64_t call = 0; call < AgreedPieces::kHistory; ++call) {
    ASSERT_TRUE(ranks[0]->can_take());
    EXPECT_EQ(ranks[0]->take(8), std::nullopt);
  }
  EXPECT_FALSE(ranks[0]->can_take());
  EXPECT_EQ(ranks[1]->take(8), std::nullopt);
  EXPECT_TRUE(ranks[0]->can_take());
}

TEST(AgreedPieces, are_known_to_a_rank_that_catches_up) {
  const Pieces ranks = make_pieces(2, 1024);
  const auto first = ranks[0]->take(256);
  const auto second = ranks[0]->take(512);
  ranks[1]->catch_up();
  for (const auto& each : ranks) EXPECT_EQ(offset_of(each->take(256)), 768);
  for (const auto& each : ranks) EXPECT_EQ(each->take(256), std::nullopt);
  ranks[0]->give_back(*first);
  ranks[0]->give_back(*second);
  for (const auto& each : ranks) EXPECT_EQ(offset_of(each->take(512)), 256);
}

constexpr int kCalls = 20'000;
constexpr int kApart = 8;  // ranks are at most so many calls apart

// One rank's calls: lengths and graphs are those of all ranks, but it holds pieces, and graphs that
// are complete, as long as it likes. Returns offsets by call.
std::vector<std::int64_t> take_and_hold(AgreedPieces& pieces, unsigned rank, std::barrier<>& all) {
  constexpr std::size_t kMostHeld = 12;
  struct Holding {
    Piece piece;
    std::int64_t bytes;
    AgreedPieces::CaptureNumber graph;
  };
  std::vector<Holding> held;     // pieces
  std::vector<Holding> written;  // by graphs
  AgreedPieces::CaptureNumber graph = 1;
  std::vector<std::int64_t> offsets;
  std::mt19937 same(7), own(rank);
  for (int call = 0; call < kCalls; ++call) {
    const std::int64_t bytes = 256 * (1 + static_cast<std::int64_t>(same() % 4));
    if (call % kApart == 0) all.arrive_and_wait();
    if (same() % 64 == 0) ++graph;
    const auto capture = same() % 3 == 0 ? graph : AgreedPieces::kNoCapture;
    const auto piece = pieces.take(bytes, capture);
    offsets.push_back(offset_of(piece));
    if (piece) {
      const auto meets = [&](const Holding& other) {
        return piece->offset < other.piece.offset + other.bytes &&
               other.piece.offset < piece->offset + bytes;
      };
      EXPECT_TRUE(std::ranges::none_of(held, meets)) << "call " << call << ", rank " << rank;
      EXPECT_TRUE(std::ranges::none_of(
          written, [&](const Holding& other) { return other.graph != capture && meets(other); }))
          << "call " << call << ", rank " << rank;
      held.push_back({*piece, bytes, capture});
      if (capture != AgreedPieces::kNoCapture) written.push_back(held.back());
    }
    if (own() % 32 == 0) {
      const AgreedPieces::CaptureNumber oldest = graph - own() % 3;
      for (const Holding& each : written) {
        if (each.graph < oldest) pieces.release(each.piece, each.graph);
      }
      std::erase_if(written, [&](const Holding& each) { return each.graph < oldest; });
    }
    while (held.size() > kMostHeld || (!held.empty() && own() % 3 == 0)) {
      const std::size_t at = own() % held.size();
      pieces.give_back(held[at].piece);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  return offsets;
}

TEST(AgreedPieces, are_the_same_on_ranks_that_hold_them_as_they_like) {
  constexpr int kRanks = 3;
  const Pieces ranks = make_pieces(kRanks, 64 * 1024);
  std::barrier<> all(kRanks);
  std::vector<std::vector<std::int64_t>> offsets(kRanks);
  std::vector<std::jthread> threads;
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] { offsets[rank] = take_and_hold(*ranks[rank], rank, all); });
  }
  threads.clear();
  EXPECT_EQ(offsets[1], offsets[0]);
  EXPECT_EQ(offsets[2], offsets[0]);
  EXPECT_GT(std::ranges::count_if(offsets[0], [](std::int64_t at) { return at >= 0; }), kCalls / 2);
}

}  // namespace
}  // namespace harpe
