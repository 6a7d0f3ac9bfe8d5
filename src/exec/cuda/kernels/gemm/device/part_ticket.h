#pragma once

#include "exec/cuda/device/types.h"

// The protocol by which the parts of a tile that is cut along K share its summation
// (gemm_parts.cuh): pure functions of the tile's ticket, a word in the GPU's memory.
namespace harpe::device {

// How many parts have arrived, how many of these are poisoned, how many wait or have yet to see
// that all have arrived, and which have left their share. Zero before and after.
//
// - A part adds arrival() to the ticket when it arrives. The part that arrives last takes its own
//   share and the shares of the parts that have left.
// - A part that waits takes its own share when it sees that all parts have arrived. Before that it
//   may leave: it exchanges the ticket for without(), which fails if the ticket has changed.
// - A part that has waited subtracts kWaiting. The last part to do so sets the ticket to zero. If
//   no part waits, the part that arrives last does that.
struct PartTicket {
  static constexpr int kMostParts = 12;
  static constexpr std::uint32_t kWaiting = 1U << 8;

  std::uint32_t word = 0;

  // What part `part` adds when it arrives. Requires: part < kMostParts.
  HP_SHARED_CODE static std::uint32_t arrival(int part, bool waits, bool is_poisoned) {
    constexpr std::uint32_t kArrived = 1;
    constexpr std::uint32_t kPoisoned = 1U << 4;
    return kArrived + (is_poisoned ? kPoisoned : 0) + (waits ? kWaiting : left_by(part));
  }
  // This ticket once `part` has stopped waiting.
  HP_SHARED_CODE PartTicket without(int part) const {
    return {.word = word - kWaiting + left_by(part)};
  }
  HP_SHARED_CODE int arrived() const { return static_cast<int>(word & 15); }
  HP_SHARED_CODE bool is_poisoned() const { return (word >> 4 & 15) != 0; }
  HP_SHARED_CODE int waiting() const { return static_cast<int>(word >> 8 & 15); }
  // The shares, a bit for each, that `part` takes when it has seen this ticket of all parts.
  HP_SHARED_CODE std::uint32_t shares_of(int part, bool is_last) const {
    return 1U << part | (is_last ? word >> kLeft : 0);
  }

 private:
  static constexpr int kLeft = 12;  // the bit of part 0
  HP_SHARED_CODE static std::uint32_t left_by(int part) { return 1U << (kLeft + part); }
};

}  // namespace harpe::device
