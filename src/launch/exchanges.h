#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe::launch {

// What executes a plan's collectives: a library that moves data between ranks, or pulls, in which
// each rank reads its part from its peers.
enum class ExchangeEngine : std::uint8_t {
  Auto,     // the library where measurements found it faster
  Library,  // the library for every collective that it can do
  Pull,
};

// The library is chosen if a rank receives at least this many bytes.
struct ExchangeRules {
  ExchangeEngine engine = ExchangeEngine::Auto;
  bool shares_gpus = false;         // the library wants a GPU for each rank
  std::int64_t least_gathered = 0;  // for all-gathers
  std::int64_t least_rounded = 0;   // for sums that are rounded before they are sent
};

// A member's own steps of a sum. The library only delivers the contributions of the others, so that
// the plan determines the order of additions and the roundings.
struct SumSteps {
  std::vector<Task> rounds;  // copies to outboxes of what is sent in another type
  Task fold;                 // over the inboxes and the member's own contribution
};

// One rank's contribution for another, with its place on both sides.
struct ExchangePart {
  RankId from;
  RankId to;
  Ref source;
  Ref destination;
};

// A collective that the library executes.
struct Exchange {
  std::vector<RankId> members;      // ascending
  std::vector<ExchangePart> parts;  // each is contiguous on both sides
  std::map<RankId, SumSteps> sums;  // empty if data is only moved
};

// A plan's collectives, by group number.
struct Exchanges {
  std::vector<Alloc> boxes;  // buffers of sums; their ids follow the plan's allocations
  std::map<std::int32_t, Exchange> by_library;
  std::map<std::int32_t, std::string> by_pulls;  // the reason for pulls

  // For when the library is unavailable: executes every collective by pulls.
  void refuse_all(const std::string& reason);
};

// Chooses the library for a collective only if GPUs are not shared, no kernel of the plan waits
// inside, each rank has its collectives in one queue, and every part is contiguous on both sides.
// Effect: sums go through boxes; contributions are rounded to `wire` first and folded in the plan's
// order. Requires: a verified plan, and its blocks.
[[nodiscard]] Exchanges choose_exchanges(const Plan& plan, const Blocks& blocks,
                                         const ExchangeRules& rules, bool waits_inside);

}  // namespace harpe::launch
