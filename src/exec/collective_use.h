#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace harpe {

// What runs a plan's collectives on GPUs, as requested.
enum class CollectiveEngine : std::uint8_t {
  Auto,  // NCCL for large all-gathers, and for large sums with a narrower wire type
  Nccl,  // NCCL for all that it can move; ranks fold sums in the plan's order
  Pull,  // each rank reads its part from its peers
};
// By engine, as in options and measurements.
inline constexpr std::array<std::string_view, 3> kEngineNames = {"auto", "nccl", "pull"};
[[nodiscard]] constexpr std::string_view print(CollectiveEngine engine) {
  return kEngineNames[static_cast<std::size_t>(engine)];
}

// What ran the collectives of one kind.
struct CollectiveUse {
  CollectiveOp operation = CollectiveOp::AllGather;
  std::string engine;      // "NCCL 2.28.9", or "pull"
  std::string reason;      // why NCCL does not run them
  std::int64_t count = 0;  // in one execution, over all ranks
  std::int64_t bytes = 0;  // moved by these, over all ranks
  friend bool operator==(const CollectiveUse&, const CollectiveUse&) = default;
};

}  // namespace harpe
