#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/cuda/signal_page.h"

namespace harpe::cuda {

struct PeersRequest {
  std::vector<DeviceId> gpus;    // of each rank; ranks may share one
  std::int64_t arena_bytes = 0;  // of each rank
  std::int32_t flags = 0;        // in the page of each
};

// The ranks of a run, with the memory that they write for each other: an arena and a page of
// signals each, at addresses that every GPU of this process may use.
class Peers {
 public:
  // Errors: G005, G006, G007; G071 two of the GPUs are no peers; G073 the memory is not there.
  [[nodiscard]] static Checked<Peers> open(const std::shared_ptr<const DriverApi>& driver,
                                           const PeersRequest& request);

  [[nodiscard]] int ranks() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const Device& device(int rank) const { return at(rank).device; }
  [[nodiscard]] DeviceAddress arena(int rank) const { return at(rank).arena.address(); }
  [[nodiscard]] const SignalAddresses& signals(int rank) const { return at(rank).page.addresses(); }
  [[nodiscard]] SignalPage& page(int rank) { return ranks_[static_cast<std::size_t>(rank)].page; }
  [[nodiscard]] const SignalPage& page(int rank) const { return at(rank).page; }

 private:
  struct Rank {
    Device device;
    DeviceMemory arena;
    SignalPage page;
  };
  explicit Peers(std::vector<Rank> ranks) : ranks_(std::move(ranks)) {}
  [[nodiscard]] const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Rank> ranks_;
};

}  // namespace harpe::cuda
