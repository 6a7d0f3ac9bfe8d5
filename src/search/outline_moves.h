#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "search/candidate.h"

namespace harpe {

// A candidate's moves with their costs for one rank, which the outline's walk schedules.

enum OutlineQueue : std::uint8_t {
  kSmQueue,
  kCeQueue,
  kTmaQueue,
  kNcclQueue,
  kProxyQueue,
  kOutlineQueues
};
constexpr int kMostSlots = 4;

// Times in seconds.
struct OutlineMove {
  CandidateMove move;
  OutlineQueue queue = kCeQueue;
  double time = 0;   // of one execution on its queue
  double delay = 0;  // from its end until another queue or rank detects it
  double fold = 0;   // at the receiver, on its SMs
  int slots = 1;
  std::uint32_t chosen_by = 0;  // bit per loop around it: a step of the loop changes the block
  int before = -1;              // index of the move whose data this one sends on
  bool written = false;
  bool relays = false;
  // While the walk runs:
  std::array<double, kMostSlots> free{};  // when each slot was last used
  double arrival = 0;
  int slot = -1;  // the slot with the current block; -1: it is still at its source
  std::int64_t goes = 0;
};

struct OutlineMoves {
  std::vector<OutlineMove>
      moves;                // a group's stages in order; its drains from the deepest outwards
  double finalise = 0;      // seconds at the end to turn partial states into results at home
  double memory_bytes = 0;  // homes, slots, states and inboxes of one rank
};
[[nodiscard]] OutlineMoves make_outline_moves(const Problem& problem, const Machine& machine,
                                              const Candidate& candidate,
                                              const std::vector<CandidateLoop>& loops);

}  // namespace harpe
