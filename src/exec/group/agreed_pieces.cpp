#include "exec/group/agreed_pieces.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "exec/group/tensor_heap.h"
#include "support/round_up.h"

namespace harpe {
namespace {

constexpr std::uint32_t kMostPieces = 4096;

// A decision holds the call's number, whether the piece is for graphs, and, in its low bits, the
// piece's index + 1, or 0 for none.
constexpr std::uint64_t kIndexBits = 15;
constexpr std::uint64_t make_decision(std::uint64_t call, std::optional<std::uint32_t> index,
                                      bool is_for_graphs) {
  return (call << 1U | (is_for_graphs ? 1U : 0U)) << kIndexBits | (index ? *index + 1 : 0);
}
constexpr std::uint64_t call_of(std::uint64_t decision) { return decision >> (kIndexBits + 1); }
constexpr bool is_for_graphs(std::uint64_t decision) { return (decision >> kIndexBits & 1U) != 0; }

}  // namespace

// Valid when all zero, as fresh memory is.
struct AgreedPieces::Words {
  static constexpr std::size_t kLine = 64;

  // Used in the first rank's page only, for all ranks.
  std::array<std::atomic<std::uint64_t>, kHistory> decisions;  // by the call's number
  std::array<std::atomic<std::int64_t>, kHistory> bytes;       // likewise: requested bytes

  alignas(kLine) std::atomic<std::uint64_t> count;  // calls of this rank
  // By piece: the number of the call whose piece this rank gave back last.
  alignas(kLine) std::array<std::atomic<std::uint64_t>, kMostPieces> given_back;
  // By piece: the captured graph of this rank that writes it.
  std::array<std::atomic<CaptureNumber>, kMostPieces> writer;
};

Checked<std::shared_ptr<AgreedPieces>> AgreedPieces::make(std::int64_t bytes,
                                                          transport::Exchange& exchange) {
  HP_TRY(Segments pages, Segments::make(static_cast<std::int64_t>(sizeof(Words)), exchange));
  return std::make_shared<AgreedPieces>(std::move(pages), exchange.rank(), exchange.ranks(), bytes);
}

AgreedPieces::AgreedPieces(Segments pages, int rank, int ranks, std::int64_t bytes)
    : pages_(std::move(pages)), rank_(rank), ranks_(ranks), bytes_(bytes) {}

AgreedPieces::Words& AgreedPieces::words(int rank) const {
  return *reinterpret_cast<Words*>(pages_.of(rank).data());
}

bool AgreedPieces::is_ahead() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (words(rank).count.load(std::memory_order_acquire) < count_) return true;
  }
  return false;
}

// A new decision overwrites one kHistory calls older, which all ranks must have read.
bool AgreedPieces::can_take() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (words(rank).count.load(std::memory_order_acquire) + kHistory <= count_) return false;
  }
  return true;
}

std::optional<AgreedPieces::Piece> AgreedPieces::take(std::int64_t bytes, CaptureNumber capture) {
  const std::uint64_t call = count_ + 1;
  std::atomic<std::uint64_t>& place = words(0).decisions[call % kHistory];
  std::uint64_t decision = place.load(std::memory_order_acquire);
  if (call_of(decision) != call) {
    // A rank that decides this call concurrently stores the same number of bytes.
    words(0).bytes[call % kHistory].store(bytes, std::memory_order_relaxed);
    const std::uint64_t own = make_decision(call, choose(bytes, capture), capture != kNoCapture);
    if (place.compare_exchange_strong(decision, own, std::memory_order_acq_rel)) decision = own;
  }
  return adopt(decision, capture);
}

std::optional<AgreedPieces::Piece> AgreedPieces::adopt(std::uint64_t decision,
                                                       CaptureNumber capture) {
  words(rank_).count.store(++count_, std::memory_order_release);
  const auto number = static_cast<std::uint32_t>(decision & ((1U << kIndexBits) - 1));
  if (number == 0) return std::nullopt;
  const std::uint32_t index = number - 1;
  if (index == pieces_.size()) {
    const std::int64_t bytes = words(0).bytes[count_ % kHistory].load(std::memory_order_relaxed);
    pieces_.push_back({.offset = end_, .bytes = bytes, .is_for_graphs = is_for_graphs(decision)});
    end_ += round_up(bytes, kTensorAlignment);
  }
  Known& piece = pieces_[index];
  piece.taken = count_;
  if (capture != kNoCapture) words(rank_).writer[index].store(capture, std::memory_order_relaxed);
  return Piece{.offset = piece.offset, .index = index, .taken = count_};
}

void AgreedPieces::give_back(const Piece& piece) {
  words(rank_).given_back[piece.index].store(piece.taken, std::memory_order_release);
}

// A later graph may have taken the piece already.
void AgreedPieces::release(const Piece& piece, CaptureNumber capture) {
  words(rank_).writer[piece.index].compare_exchange_strong(capture, kNoCapture,
                                                           std::memory_order_acq_rel);
}

void AgreedPieces::catch_up() {
  while (true) {
    const std::uint64_t call = count_ + 1;
    const std::uint64_t decision = words(0).decisions[call % kHistory].load();
    if (call_of(decision) != call) return;
    if (const std::optional<Piece> piece = adopt(decision, kNoCapture)) give_back(*piece);
  }
}

std::int64_t AgreedPieces::held() const {
  std::int64_t bytes = 0;
  for (std::size_t index = 0; index < pieces_.size(); ++index) {
    const bool is_held = words(rank_).given_back[index].load() != pieces_[index].taken;
    if (is_held) bytes += pieces_[index].bytes;
  }
  return bytes;
}

bool AgreedPieces::is_free(std::uint32_t index, CaptureNumber capture) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    const Words& its = words(rank);
    const auto given_back = its.given_back[index].load(std::memory_order_acquire);
    const CaptureNumber writer = its.writer[index].load(std::memory_order_acquire);
    if (given_back != pieces_[index].taken) return false;
    if (writer != kNoCapture && writer != capture) return false;
  }
  return true;
}

// Pieces keep their length, because plans request few different lengths again and again.
std::optional<std::uint32_t> AgreedPieces::choose(std::int64_t bytes, CaptureNumber capture) const {
  const auto known = static_cast<std::uint32_t>(pieces_.size());
  for (std::uint32_t index = 0; index < known; ++index) {
    const Known& piece = pieces_[index];
    const bool fits = piece.bytes == bytes && piece.is_for_graphs == (capture != kNoCapture);
    if (fits && is_free(index, capture)) return index;
  }
  const bool has_room = known < kMostPieces && bytes <= bytes_ - end_;
  return has_room ? std::optional(known) : std::nullopt;
}

}  // namespace harpe
