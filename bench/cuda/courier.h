#pragma once

#include <vector>

#include "bench/cuda/draw.h"
#include "bench/cuda/gpu.h"
#include "bench/cuda/signals.h"

namespace harpe::bench {

// Data that arrive while a kernel runs: the copies, and the flag that is raised after them.
struct Parcel {
  std::vector<RowCopy> copies;
  int flag = 0;
};

// Delivers parcels in its own stream through the copy engines. Sources are in host memory or on a
// peer, so that no SM is needed, and kernels may occupy all SMs.
class Courier {
 public:
  // Each flag grows by `arrivals` per epoch.
  Courier(Gpu& gpu, const Signals& signals, std::uint32_t arrivals);

  // Orders later deliveries after the work that `stream` holds.
  void follow(CUstream stream);
  // Delivers the parcels in the given order. Before the data, the flag takes the value just below
  // its target: a kernel that mistakes that for ready reads memory without data. `pause_us` bounds
  // a random wait of the host before each step; 0: none.
  void deliver(const std::vector<Parcel>& parcels, const std::vector<int>& order, Draw& draw,
               std::int64_t pause_us);
  [[nodiscard]] CUstream stream() const { return stream_; }

 private:
  Gpu* gpu_;
  const Signals* signals_;
  std::uint32_t arrivals_;
  CUstream stream_;
  CUevent event_;
};

// Busy-waits on the host.
void pause_host(std::int64_t microseconds);

}  // namespace harpe::bench
