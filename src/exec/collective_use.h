#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace harpe {

// Who does a plan's collectives on GPUs, as asked for.
enum class CollectiveEngine : std::uint8_t {
  Auto,  // NCCL what is measured to be faster there, but no sums: it has an order of its own
  Nccl,  // all that it can do, sums in its own order too
  Pull,  // each rank takes its part from its peers
};
// By engine, as options and measurements name them.
inline constexpr std::array<std::string_view, 3> kEngineNames = {"auto", "nccl", "pull"};
[[nodiscard]] constexpr std::string_view print(CollectiveEngine engine) {
  return kEngineNames[static_cast<std::size_t>(engine)];
}

// What collectives of a kind were done by.
struct CollectiveUse {
  CollectiveOp operation = CollectiveOp::AllGather;
  std::string engine;      // "NCCL 2.28.9", or "pull"
  std::string reason;      // why NCCL does not do them
  std::int64_t count = 0;  // in an execution, over all ranks
  std::int64_t bytes = 0;  // that cross in these, over all ranks
  friend bool operator==(const CollectiveUse&, const CollectiveUse&) = default;
};

}  // namespace harpe
