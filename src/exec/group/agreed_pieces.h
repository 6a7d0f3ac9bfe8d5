#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/group/segments.h"

namespace harpe {

// Pieces of equally long memories, one of each rank, at the same places on all ranks. Ranks take
// them in the same order and give them back whenever they like. Who takes first decides for all;
// a piece is taken again once all ranks have given it back. What ranks know of each other is in
// memory of this host. Calls come from one thread at a time, but for give_back.
class AgreedPieces {
 public:
  struct Piece {
    std::int64_t offset = 0;  // a multiple of kTensorAlignment
    std::uint32_t index = 0;
    std::uint64_t taken = 0;  // the number of the call that took it

    friend bool operator==(const Piece&, const Piece&) = default;
  };
  // A rank may be so many calls ahead of another one.
  static constexpr std::uint64_t kHistory = 4096;

  // Collective. `bytes`: of each rank's memory, equally many on all. Errors: Segments::make's.
  [[nodiscard]] static Checked<std::shared_ptr<AgreedPieces>> make(std::int64_t bytes,
                                                                   transport::Exchange& exchange);
  AgreedPieces(Segments pages, int rank, int ranks, std::int64_t bytes);

  // Whether no other rank is too far behind.
  [[nodiscard]] bool can_take() const;
  // Requires: can_take(). All ranks take as many bytes, above 0, in the same order. None, on all
  // ranks: there is no room, or the rank that decides wants none.
  [[nodiscard]] std::optional<Piece> take(std::int64_t bytes, bool is_wanted = true);
  // From any thread, once.
  void give_back(const Piece& piece);
  // Bytes that this rank has taken and not given back.
  [[nodiscard]] std::int64_t held() const;
  // Takes and gives back what others have taken beyond this rank. Requires: no rank takes now.
  void catch_up();

 private:
  struct Words;
  struct Known {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint64_t taken = 0;
  };

  [[nodiscard]] Words& words(int rank) const;
  [[nodiscard]] bool is_free(std::uint32_t index) const;
  // The index of a piece, one behind those that are known for a new one; none: no room.
  [[nodiscard]] std::optional<std::uint32_t> choose(std::int64_t bytes) const;
  [[nodiscard]] std::optional<Piece> adopt(std::uint64_t decision);

  Segments pages_;
  int rank_, ranks_;
  std::int64_t bytes_;
  std::int64_t end_ = 0;       // of what pieces cover
  std::uint64_t count_ = 0;    // calls of take
  std::vector<Known> pieces_;  // the same on all ranks that have called as often
};

}  // namespace harpe
