#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/cuda/group/relocation.h"

namespace harpe::cuda {

// Graphs of one captured graph, each at work on homes at other addresses: so many, of which one
// that was not used for longest is changed where another is wanted.
class Bindings {
 public:
  static constexpr std::size_t kMost = 16;

  // All graphs are made now: making one may have to wait until the GPU is idle, and by then another
  // rank's execution may wait for this rank's. `homes`: where those lie that may be elsewhere, by
  // home; those that may not become empty ranges. `stream`: of the GPU, idle. Errors: G005, G008.
  [[nodiscard]] static Checked<Bindings> make(const Stream& stream, CapturedTwice captured,
                                              std::vector<AddressRange>& homes);

  // The graph that works at these addresses, by home; of homes that stay it is 0.
  [[nodiscard]] const Graph* find(std::span<const DeviceAddress> addresses);
  // Changes one. Errors: G005, G008.
  [[nodiscard]] Checked<const Graph*> add(std::span<const DeviceAddress> addresses);
  // As a part of what the stream captures, behind what it has captured. Errors: G005.
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
