#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe::launch {

// Who does a plan's collectives: a library that moves data between ranks, or each rank by pulling
// its part from its peers.
enum class ExchangeEngine : std::uint8_t {
  Auto,     // the library what it was measured to be faster at
  Library,  // the library all that it can do
  Pull,
};

// From so many bytes on that a rank takes from others the library is faster than pulls.
struct ExchangeRules {
  ExchangeEngine engine = ExchangeEngine::Auto;
  std::int64_t least_gathered = 0;  // of all-gathers
  std::int64_t least_rounded = 0;   // of sums that are rounded on their way
};

// What one member of a sum does itself: the library only brings what the others give, so that order
// and roundings are the plan's.
struct SumSteps {
  std::vector<Task> rounds;  // copies to outboxes of what travels in another type
  Task fold;                 // of inboxes, and of what is the member's own
};

// What one rank gives to another: where it lies on both sides.
struct ExchangePart {
  RankId from;
  RankId to;
  Ref source;
  Ref destination;
};

// A collective that the library does.
struct Exchange {
  std::vector<RankId> members;      // ascending
  std::vector<ExchangePart> parts;  // each one run of bytes on both sides
  std::map<RankId, SumSteps> sums;  // empty: data are only moved
};

// A plan's collectives, by group.
struct Exchanges {
  std::vector<Alloc> boxes;  // that sums go through; ids behind the plan's allocations
  std::map<std::int32_t, Exchange> by_library;
  std::map<std::int32_t, std::string> by_pulls;  // why

  // The library is not to be had.
  void refuse_all(const std::string& reason);
};

// Precondition of each collective: GPUs are not shared, no kernel of the plan waits inside, a
// rank's collectives are in one queue, parts are one run of bytes on both sides.
// Effect: sums go through boxes, rounded to `wire` before, folded in the plan's order.
// Requires: a verified plan, and its blocks.
[[nodiscard]] Exchanges choose_exchanges(const Plan& plan, const Blocks& blocks,
                                         const ExchangeRules& rules, bool shares_gpus,
                                         bool waits_inside);

}  // namespace harpe::launch
