#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/cuda/gpu.h"

namespace harpe::bench {

// A subject of timing: enqueues one call on the stream, with input set number `set`.
struct Contender {
  std::string name;
  std::function<void(int set, CUstream stream)> call;
  std::function<void(CUstream stream)> prepare{};  // before each call, outside its time
};

struct Timing {
  double median_us = 0;
  double least_us = 0;
  double spread = 0;  // (75th - 25th percentile) / median
};

// Times calls with events, all contenders alternating in one queue, so that clocks and temperature
// are the same for all. Before each call it overwrites the L2 cache, which also keeps the host
// ahead of the GPU.
class Stopwatch {
 public:
  explicit Stopwatch(Gpu& gpu);

  // Rotates through `sets` of inputs. The first rounds do not count.
  [[nodiscard]] std::vector<Timing> time(const std::vector<Contender>& contenders, int rounds,
                                         int sets) const;

  [[nodiscard]] CUstream stream() const { return stream_; }

 private:
  struct Lap {
    CUevent begin;
    CUevent end;
  };
  [[nodiscard]] std::vector<Lap> run_round(const std::vector<Contender>& contenders, int round,
                                           int sets) const;

  Gpu* gpu_;
  cuda::DeviceMemory flush_;
  CUstream stream_;
};

[[nodiscard]] Timing summarise(std::vector<double> microseconds);

}  // namespace harpe::bench
