#include "exec/cuda/target/made_up_memory.h"

namespace harpe::cuda {
namespace {

// The first rank's arena, and the distance of arenas.
constexpr std::uintptr_t kFirstArena = std::uintptr_t{1} << 44;
constexpr std::uintptr_t kFirstImage = std::uintptr_t{1} << 62;  // of puts; aligned as in memory

actions::Bases made_up_bases(const Plan& plan) {
  actions::Bases bases;
  for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    const auto at = kFirstArena * static_cast<std::uintptr_t>(rank + 1);
    bases.arenas.push_back(reinterpret_cast<std::byte*>(at));
  }
  return bases;
}

std::vector<std::byte*> behind(const actions::Bases& bases, std::int64_t offset) {
  std::vector<std::byte*> places = bases.arenas;
  for (std::byte*& place : places) place += offset;
  return places;
}

}  // namespace

MadeUpMemory::MadeUpMemory(const Plan& plan, const Blocks& blocks)
    : plan_(plan),
      blocks_(blocks),
      layouts_(plan, blocks),
      numbers_(numbers_of(plan, blocks)),
      bases_(made_up_bases(plan)),
      occupancy_(plan, blocks, behind(bases_, numbers_.offset)) {}

// Images lie outside all arenas, so that no operand in them counts as a place.
std::byte* MadeUpMemory::image_of(TaskId put) const {
  return reinterpret_cast<std::byte*>(kFirstImage) + (static_cast<std::int64_t>(put.value) << 36);
}

SpecSource MadeUpMemory::source(const NarrowStates& narrow, const CollectiveChoice& collectives,
                                int multiprocessors) {
  return {.plan = plan_,
          .blocks = blocks_,
          .layouts = layouts_,
          .bases = bases_,
          .occupancy = occupancy_,
          .numbers = numbers_,
          .narrow = narrow,
          .collectives = collectives,
          .multiprocessors = multiprocessors,
          .staging = [this](TaskId put) { return image_of(put); },
          .landing = [this](TaskId put) { return image_of(put); },
          .communicator = [](std::size_t, RankId) { return nullptr; }};
}

}  // namespace harpe::cuda
