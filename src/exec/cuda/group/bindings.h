#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/cuda/group/relocation.h"

namespace harpe::cuda {

// kMost instances of one captured graph, each bound to other addresses of homes. For new addresses,
// the least recently used instance is changed.
class Bindings {
 public:
  static constexpr std::size_t kMost = 16;

  // Makes all instances now, because making one may wait until the GPU is idle, and later another
  // rank's execution may wait for this rank's. `homes`: the ranges of the homes that may be
  // relocated, by home; ranges of homes that must stay become empty. `stream`: of the GPU, idle.
  // Errors: G005, G008.
  [[nodiscard]] static Checked<Bindings> make(const Stream& stream, CapturedTwice captured,
                                              std::vector<AddressRange>& homes);

  // The instance bound to these addresses, by home; homes that stay have address 0.
  [[nodiscard]] const Graph* find(std::span<const DeviceAddress> addresses);
  // Changes an instance. Errors: G005, G008.
  [[nodiscard]] Checked<const Graph*> add(std::span<const DeviceAddress> addresses);
  // As part of the stream's capture, behind what it has captured. Errors: G005.
  [[nodiscard]] Result<Ok, CudaError> add_to_capture(std::span<const DeviceAddress> addresses,
                                                     CUstream stream);

 private:
  struct Slot {
    std::vector<DeviceAddress> addresses;
    Graph graph;
    std::uint64_t last_use = 0;
  };

  Bindings(CapturedGraph captured, Relocation relocation)
      : captured_(std::move(captured)), relocation_(std::move(relocation)) {}

  CapturedGraph captured_;
  Relocation relocation_;
  std::vector<Slot> slots_;
  std::uint64_t uses_ = 0;
};

}  // namespace harpe::cuda
