#pragma once

#include "exec/cuda/device/types.h"

// The protocol by which the parts of a tile that is cut along K share its summation
// (gemm_parts.cuh): pure functions of the tile's ticket, a word in the GPU's memory.
namespace harpe::device {

// How many parts have arrived, how many of these are poisoned, how many wait or have yet to see
// that all have arrived, and which have left their share. Zero before and after.
//
// A part arrives by adding arrival(). The one that arrives last takes its own share and those of
// all that have left; once all have arrived, nobody leaves any more. A part that waits takes its
// own share when it sees that all have arrived, or leaves it before, by exchanging the ticket for
// without(). A part that has waited subtracts kWaiting. Who subtracts the last one, or arrives
// last when nobody waits, resets the ticket.
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
