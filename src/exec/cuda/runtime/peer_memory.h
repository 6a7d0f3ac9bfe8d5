#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/runtime/ipc_memory.h"
#include "transport/exchange.h"

namespace harpe::cuda {

// What is shared between processes is shared in whole pages of the GPU: such memory is not a part
// of an allocation that holds other things too.
inline constexpr std::int64_t kSharedGranule = std::int64_t{2} << 20;

// Where every rank's part of memory that all of them have lies for this rank's GPU. Parts of ranks
// in other processes are imported, parts of threads of this process are where they are.
class PeerMemory {
 public:
  // All ranks together. Requires: `own` is an allocation in whole granules. Errors: G005; G071 a
  // GPU of this process is out of reach; N010; N015 parts are not equally large; N017 another rank
  // cannot.
  [[nodiscard]] static Checked<PeerMemory> share(const Device& device, const DeviceMemory& own,
                                                 transport::Exchange& exchange);

  [[nodiscard]] int ranks() const { return static_cast<int>(places_.size()); }
  [[nodiscard]] DeviceAddress operator[](int rank) const {
    return places_[static_cast<std::size_t>(rank)];
  }
  // Lets go of what was imported.
  void close() { imports_.clear(); }

 private:
  struct Card;
  PeerMemory() = default;
  // The next rank's.
  [[nodiscard]] Checked<Ok> add(const Device& device, const Card& peer);

  std::vector<DeviceAddress> places_;  // by rank
  std::vector<ImportedMemory> imports_;
};

// One rank's arena, and where the arenas of all ranks lie. Executors of a group use it in turn.
struct Arena {
  DeviceMemory own;
  PeerMemory of_all;

  // All ranks together, with equally many bytes. Errors: G008, G073 no memory; those of `share`.
  [[nodiscard]] static Checked<std::shared_ptr<Arena>> make(const Device& device,
                                                            std::int64_t bytes,
                                                            transport::Exchange& exchange);
};

// Errors: G005; G073 so much is not free.
[[nodiscard]] Checked<Ok> check_memory(const Device& device, std::int64_t needed);

}  // namespace harpe::cuda
