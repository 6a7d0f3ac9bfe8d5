#pragma once

#include <vector>

#include "bench/cuda/draw.h"
#include "bench/cuda/gpu.h"
#include "bench/cuda/signals.h"

namespace harpe::bench {

// Data that arrives while a kernel runs: what is copied, then the flag that is raised.
struct Parcel {
  std::vector<RowCopy> copies;
  int flag = 0;
};

// Delivers parcels from a stream of its own, through the copy engines: sources lie in host memory
// or on a peer, so that no multiprocessor is needed, and kernels may hold all of them.
class Courier {
 public:
  // Each flag grows by `arrivals` an epoch.
  Courier(Gpu& gpu, const Signals& signals, std::uint32_t arrivals);

  // From here on, deliveries come after what `stream` holds now.
  void follow(CUstream stream);
  // One parcel after another in the order given. The flag passes through the value just below its
  // target, before the data: whoever takes that for ready reads what is not there yet. `pause_us`
  // bounds a random wait of the host before each step; 0: none.
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

// The host looks at the clock until then.
void pause_host(std::int64_t microseconds);

}  // namespace harpe::bench
