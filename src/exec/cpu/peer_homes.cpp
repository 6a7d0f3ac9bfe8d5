#include "exec/cpu/peer_homes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "exec/actions/addresses.h"

namespace harpe::cpu {

Checked<PeerHomes> PeerHomes::make(const Plan& plan, const Blocks& blocks,
                                   const actions::Bases& bases,
                                   std::shared_ptr<const Segments> tensors,
                                   transport::Exchange& exchange) {
  std::vector<Home> others;
  std::size_t most = 1;
  for (int rank = 0; rank < exchange.ranks(); ++rank) {
    const std::vector<LocalHome> homes = local_homes(plan, blocks, RankId(rank));
    most = std::max(most, homes.size());
    for (std::size_t i = 0; i < homes.size(); ++i) {
      if (rank == exchange.rank() || homes[i].is_own || !homes[i].alloc.valid()) continue;
      others.push_back({.rank = rank,
                        .index = i,
                        .in_arena = bases.address(plan.allocs[homes[i].alloc.index()]),
                        .bytes = homes[i].bytes()});
    }
  }
  HP_TRY(Segments places,
         Segments::make(static_cast<std::int64_t>(most * sizeof(std::int64_t)), exchange));
  PeerHomes made(std::move(tensors), std::move(places), exchange.rank());
  made.homes_ = std::move(others);
  return made;
}

void PeerHomes::find_fields(StepWork& work) {
  for (std::vector<actions::TaskWork>& queue : work) {
    auto& steps = fields_.emplace_back(queue.size());
    for (std::size_t position = 0; position < queue.size(); ++position) {
      actions::for_each_address(queue[position], [&](void* field, const std::byte* value) {
        for (std::size_t i = 0; i < homes_.size(); ++i) {
          const std::ptrdiff_t offset = value - homes_[i].in_arena;
          if (offset < 0 || offset >= homes_[i].bytes) continue;
          steps[position].push_back({.home = i, .at = field, .offset = offset});
        }
      });
    }
  }
}

std::optional<std::int64_t> PeerHomes::find_tensor(const LocalHome& home,
                                                   const TensorView& tensor) const {
  const std::span<std::byte> own = tensors_->of(rank_);
  const std::ptrdiff_t offset = tensor.data - own.data();
  if (offset < 0 || offset + home.bytes() > std::ssize(own)) return std::nullopt;
  return offset;
}

std::int64_t& PeerHomes::word(int rank, std::size_t home) const {
  return reinterpret_cast<std::int64_t*>(places_.of(rank).data())[home];
}

// Relaxed: the signals that the Entry raises afterwards release it.
void PeerHomes::publish(std::size_t home, std::optional<std::int64_t> tensor) {
  std::atomic_ref(word(rank_, home)).store(tensor ? *tensor + 1 : 0, std::memory_order_relaxed);
}

// Relaxed: the step has acquired a signal that was raised behind the Entry of each such rank.
void PeerHomes::lead(StepPlace step) const {
  const auto& fields =
      fields_[static_cast<std::size_t>(step.queue)][static_cast<std::size_t>(step.position)];
  for (const Field& field : fields) {
    const Home& home = homes_[field.home];
    const std::int64_t place =
        std::atomic_ref(word(home.rank, home.index)).load(std::memory_order_relaxed);
    std::byte* const begin =
        place == 0 ? home.in_arena : tensors_->of(home.rank).data() + (place - 1);
    const std::byte* const address = begin + field.offset;
    std::memcpy(field.at, &address, sizeof(address));
  }
}

}  // namespace harpe::cpu
