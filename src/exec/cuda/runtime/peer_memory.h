#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/runtime/ipc_memory.h"
#include "transport/exchange.h"

namespace harpe::cuda {

// Memory shared between processes is allocated in whole GPU pages, so that the allocation contains
// nothing else.
inline constexpr std::int64_t kSharedGranule = std::int64_t{2} << 20;

// The address, for this rank's GPU, of every rank's part of a shared memory. Parts of other
// processes are imported; parts of threads of this process are used at their own addresses.
class PeerMemory {
 public:
  // Collective. Requires: `own` is an allocation in whole granules. Errors: G005; G071 no peer
  // access to a GPU of this process; N010; N015 parts of different sizes; N017 another rank failed.
  [[nodiscard]] static Checked<PeerMemory> share(const Device& device, const DeviceMemory& own,
                                                 transport::Exchange& exchange);

  [[nodiscard]] int ranks() const { return static_cast<int>(places_.size()); }
  [[nodiscard]] DeviceAddress operator[](int rank) const {
    return places_[static_cast<std::size_t>(rank)];
  }
  // Unmaps what was imported.
  void close() { imports_.clear(); }

 private:
  struct Card;
  PeerMemory() = default;
  // Adds the next rank's part.
  [[nodiscard]] Checked<Ok> add(const Device& device, const Card& peer);

  std::vector<DeviceAddress> places_;  // by rank
  std::vector<ImportedMemory> imports_;
};

// One rank's arena, and the addresses of all ranks' arenas. Executors of a group use it in turn.
struct Arena {
  DeviceMemory own;
  PeerMemory of_all;

  // Collective, with equal `bytes`. Errors: G008, G073 no memory; those of `share`.
  [[nodiscard]] static Checked<std::shared_ptr<Arena>> make(const Device& device,
                                                            std::int64_t bytes,
                                                            transport::Exchange& exchange);
};

// Errors: G005; G073 less than `needed` is free.
[[nodiscard]] Checked<Ok> check_memory(const Device& device, std::int64_t needed);

}  // namespace harpe::cuda
