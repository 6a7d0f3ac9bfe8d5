#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/group/segments.h"

namespace harpe {

// Pieces of equally long memories, one memory per rank, at the same offsets on all ranks. Ranks
// take pieces in the same order and give them back at any time. The first rank to take decides for
// all; a piece is taken again once all ranks have given it back. What a rank takes for a captured
// graph, which may run at any time, is then taken again for the same graph only, until all ranks
// have released it. Such pieces are apart from the others. The shared state lies in memory of this
// host. Calls come from one thread at a time, except give_back and release.
class AgreedPieces {
 public:
  struct Piece {
    std::int64_t offset = 0;  // a multiple of kTensorAlignment
    std::uint32_t index = 0;
    std::uint64_t taken = 0;  // number of the call that took it

    friend bool operator==(const Piece&, const Piece&) = default;
  };
  // A graph that a rank captures: how many it has captured before, plus 1. Ranks that capture the
  // same graphs give one graph the same number.
  using CaptureNumber = std::uint64_t;
  static constexpr CaptureNumber kNoCapture = 0;
  // By how many calls a rank may be ahead of another.
  static constexpr std::uint64_t kHistory = 4096;

  // Collective. `bytes`: of each rank's memory, equal on all. Errors: those of Segments::make.
  [[nodiscard]] static Checked<std::shared_ptr<AgreedPieces>> make(std::int64_t bytes,
                                                                   transport::Exchange& exchange);
  AgreedPieces(Segments pages, int rank, int ranks, std::int64_t bytes);

  // True if another rank has made fewer calls. What it will give back by then is not free yet.
  [[nodiscard]] bool is_ahead() const;
  // False if another rank is kHistory or more calls behind.
  [[nodiscard]] bool can_take() const;
  // Requires: can_take(). All ranks take equal `bytes` > 0, in the same order. None, on all ranks,
  // if there is no room.
  [[nodiscard]] std::optional<Piece> take(std::int64_t bytes, CaptureNumber capture = kNoCapture);
  // From any thread, once per piece.
  void give_back(const Piece& piece);
  // From any thread: this rank's captured graph, for which it took the piece, runs no more.
  void release(const Piece& piece, CaptureNumber capture);
  // Bytes that this rank has taken and not given back.
  [[nodiscard]] std::int64_t held() const;
  // Takes and gives back what other ranks have taken beyond this rank. Requires: no rank takes now.
  void catch_up();

 private:
  struct Words;
  struct Known {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint64_t taken = 0;
    bool is_for_graphs = false;
  };

  [[nodiscard]] Words& words(int rank) const;
  [[nodiscard]] bool is_free(std::uint32_t index, CaptureNumber capture) const;
  // The index of a piece; one past the known ones for a new piece; none without room.
  [[nodiscard]] std::optional<std::uint32_t> choose(std::int64_t bytes,
                                                    CaptureNumber capture) const;
  [[nodiscard]] std::optional<Piece> adopt(std::uint64_t decision, CaptureNumber capture);

  Segments pages_;
  int rank_, ranks_;
  std::int64_t bytes_;
  std::int64_t end_ = 0;       // of the part that pieces cover
  std::uint64_t count_ = 0;    // calls of take
  std::vector<Known> pieces_;  // equal on all ranks after equally many calls
};

}  // namespace harpe
