#include "exec/cuda/group/inboxes.h"

#include <algorithm>

#include "plan/launch_signals.h"
#include "plan/slots.h"
#include "support/round_up.h"

namespace harpe::cuda {

Inboxes::Inboxes(const Plan& plan, const launch::LaunchPlan& launches) {
  std::map<RankId, std::int64_t> used;
  for (const AllocId id : launch::inboxes_of(launches)) {
    const Alloc& alloc = plan.allocs[id.index()];
    std::int64_t& bytes = used[alloc.rank];
    offsets_[id] = bytes;
    bytes += round_up(alloc.bytes, kSlotAlignment);
    bytes_ = std::max(bytes_, bytes);
  }
}

void Inboxes::move_apart(Plan& plan, std::span<const std::int64_t> distances) const {
  for (const auto& [id, offset] : offsets_) {
    Alloc& alloc = plan.allocs[id.index()];
    alloc.offset = distances[alloc.rank.index()] + offset;
  }
}

}  // namespace harpe::cuda
