#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "search/candidate.h"

namespace harpe {

// The crossings of a candidate with what each costs one rank: what the outline's walk schedules.

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
  double time = 0;   // of one go on its queue
  double delay = 0;  // from its end until another queue or rank knows
  double fold = 0;   // at the receiver, on its SMs
  int slots = 1;
  std::uint32_t chosen_by = 0;  // bit per loop around it: another step of it, another block
  int before = -1;              // the move that brings what this one sends on, by index
  bool written = false;
  bool relays = false;
  // While the walk runs:
  std::array<double, kMostSlots> free{};  // when each slot was last used
  double arrival = 0;
  int slot = -1;  // that holds it now; -1: it lies where it came from
  std::int64_t goes = 0;
};

struct OutlineMoves {
  std::vector<OutlineMove>
      moves;                // a group's stages in order; its drains from the deepest outwards
  double finalise = 0;      // seconds at the end, from partial states to homes
  double memory_bytes = 0;  // homes, slots, states and inboxes of one rank
};
[[nodiscard]] OutlineMoves make_outline_moves(const Problem& problem, const Machine& machine,
                                              const Candidate& candidate,
                                              const std::vector<CandidateLoop>& loops);

}  // namespace harpe
