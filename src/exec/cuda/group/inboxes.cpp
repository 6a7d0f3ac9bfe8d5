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

std::map<std::pair<RankId, std::string>, std::byte*> Inboxes::places(
    const Plan& plan, std::span<std::byte* const> begins) const {
  std::map<std::pair<RankId, std::string>, std::byte*> places;
  for (const auto& [id, offset] : offsets_) {
    const Alloc& alloc = plan.allocs[id.index()];
    places[{alloc.rank, alloc.name}] = begins[alloc.rank.index()] + offset;
  }
  return places;
}

}  // namespace harpe::cuda
