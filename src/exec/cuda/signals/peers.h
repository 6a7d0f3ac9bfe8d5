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
  std::vector<DeviceId> gpus;    // of each rank; ranks may share one
  std::int64_t arena_bytes = 0;  // of each rank
  std::int32_t flags = 0;        // in the page of each
};

// What one rank in a process of its own brings along.
struct OwnRankRequest {
  DeviceId gpu;
  std::int64_t arena_bytes = 0;  // like `flags`, equal in all ranks
  std::int32_t flags = 0;
};

// The ranks of a run, with the memory that they write for each other: an arena and a page of
// signals each, at addresses that the GPUs of this process may use.
class Peers {
 public:
  // All ranks in this process. Errors: G005, G006, G007; G071 two of the GPUs are no peers; G073
  // the memory is not there.
  [[nodiscard]] static Checked<Peers> open(const std::shared_ptr<const DriverApi>& driver,
                                           const PeersRequest& request);
  // One rank in this process, the others in processes of the same machine, which call this too.
  // Errors: as of `open`; N010 the others do not come; N017 one of them cannot join.
  [[nodiscard]] static Checked<Peers> join(const std::shared_ptr<const DriverApi>& driver,
                                           const OwnRankRequest& request,
                                           transport::Exchange& exchange);
  // The exchange's rank, on arenas that others use too and with pages of its own, of `flags` and an
  // inbox; by all ranks together. Errors: G005, G008; those of PeerMemory::share.
  [[nodiscard]] static Checked<Peers> over(const Device& device,
                                           const std::shared_ptr<Arena>& arena, std::int32_t flags,
                                           std::int64_t inbox_bytes, transport::Exchange& exchange);
  // After `join`, once this rank's work is done: waits until that of all is, and lets go of their
  // memory, so that each may free its own.
  [[nodiscard]] Checked<Ok> leave(transport::Exchange& exchange);

  [[nodiscard]] int ranks() const { return static_cast<int>(views_.size()); }
  [[nodiscard]] DeviceAddress arena(int rank) const { return view(rank).arena; }
  [[nodiscard]] const SignalAddresses& signals(int rank) const { return view(rank).signals; }

  [[nodiscard]] bool is_own(int rank) const { return own_.contains(rank); }
  // Requires: the rank is in this process.
  [[nodiscard]] const Device& device(int rank) const { return own(rank).device; }
  [[nodiscard]] const SignalPage& page(int rank) const { return own(rank).page; }
  [[nodiscard]] SignalPage& page(int rank);
  // Of the rank, where it is in this process, else of this process's first.
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
  std::shared_ptr<Arena> arena_;  // where others have the other ranks
  std::optional<PeerMemory> pages_;
};

}  // namespace harpe::cuda
