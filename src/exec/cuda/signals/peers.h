#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "exec/cuda/runtime/peer_memory.h"
#include "exec/cuda/signals/signal_page.h"
#include "transport/exchange.h"

namespace harpe::cuda {

struct PeersRequest {
  std::vector<Device> devices;   // of each rank; ranks may have parts of one GPU
  std::int64_t arena_bytes = 0;  // of each rank
  std::int32_t flags = 0;        // in each rank's page
};

// What a rank in its own process contributes.
struct OwnRankRequest {
  Device device;
  std::int64_t arena_bytes = 0;  // like `flags`, equal on all ranks
  std::int32_t flags = 0;
};

// The ranks of a run and the memory that they share: an arena and a page of signals each, at
// addresses that the GPUs of this process may use.
class Peers {
 public:
  // All ranks in this process. Errors: G005; G071 two GPUs have no peer access; G073
  // not enough memory.
  [[nodiscard]] static Checked<Peers> open(const PeersRequest& request);
  // One rank in this process, the others in processes of the same machine; collective. Errors: as
  // `open`; N010 a rank does not arrive; N017 a rank cannot join.
  [[nodiscard]] static Checked<Peers> join(const OwnRankRequest& request,
                                           transport::Exchange& exchange);
  // The exchange's rank, on arenas that other plans use too, with its own page of `flags` and an
  // inbox. Collective. Errors: G005, G008; those of PeerMemory::share.
  [[nodiscard]] static Checked<Peers> over(const Device& device,
                                           const std::shared_ptr<Arena>& arena, std::int32_t flags,
                                           std::int64_t inbox_bytes, transport::Exchange& exchange);
  // After `join`, once this rank's work is done: waits until all ranks' work is done and unmaps
  // their memory, so that each may free its own.
  [[nodiscard]] Checked<Ok> leave(transport::Exchange& exchange);

  [[nodiscard]] int ranks() const { return static_cast<int>(views_.size()); }
  [[nodiscard]] DeviceAddress arena(int rank) const { return view(rank).arena; }
  [[nodiscard]] const SignalAddresses& signals(int rank) const { return view(rank).signals; }

  [[nodiscard]] bool is_own(int rank) const { return own_.contains(rank); }
  // Requires: the rank is in this process.
  [[nodiscard]] const Device& device(int rank) const { return own(rank).device; }
  [[nodiscard]] const SignalPage& page(int rank) const { return own(rank).page; }
  [[nodiscard]] SignalPage& page(int rank);
  // The rank's GPU if it is in this process, else the GPU of this process's first rank.
  [[nodiscard]] const Device& device_for(int rank) const {
    return is_own(rank) ? device(rank) : own_.begin()->second.device;
  }

 private:
  // A rank of this process.
  struct Own {
    Device device;
    std::shared_ptr<const DeviceMemory> arena;
    SignalPage page;
  };
  // Any rank.
  struct View {
    DeviceAddress arena = 0;
    SignalAddresses signals;
  };
  Peers() = default;
  void add_own(int rank, Own own);
  [[nodiscard]] const View& view(int rank) const;
  [[nodiscard]] const Own& own(int rank) const;

  std::map<int, Own> own_;  // by rank
  std::vector<View> views_;
  std::shared_ptr<Arena> arena_;  // if other processes have the other ranks
  std::optional<PeerMemory> pages_;
};

}  // namespace harpe::cuda
