#pragma once

#include <cstdint>
#include <vector>

#include "bench/cuda/gpu.h"
#include "bench/cuda/signals.h"

namespace harpe::bench {

// The element of a rank.
template <class Values>
auto& of(Values& values, std::int64_t rank) {
  return values[static_cast<std::size_t>(rank)];
}

// Ranks that share one GPU, each with its own stream and a flag for each rank that sends to it.
// Their kernels run at the same time if each has its share of the SMs.
class RanksBeside {
 public:
  RanksBeside(Gpu& gpu, int ranks) : gpu_(&gpu), begun_(gpu.new_event()) {
    constexpr std::uint64_t kLimitNs = 2'000'000'000;
    for (int rank = 0; rank < ranks; ++rank) {
      signals_.emplace_back(gpu, ranks, kLimitNs);
      streams_.push_back(gpu.new_stream());
      ended_.push_back(gpu.new_event());
    }
  }

  [[nodiscard]] const Signals& signals(std::int64_t rank) const { return of(signals_, rank); }

  // Calls `launch(rank, stream)` for each rank in the order, after the stream's earlier work and
  // before its later work.
  template <class Launch>
  void run(const std::vector<int>& order, CUstream stream, const Launch& launch) const {
    gpu_->record(begun_, stream);
    for (const int rank : order) {
      gpu_->wait_for(of(streams_, rank), begun_);
      launch(rank, of(streams_, rank));
      gpu_->record(of(ended_, rank), of(streams_, rank));
    }
    for (const CUevent ended : ended_) gpu_->wait_for(stream, ended);
  }

  void begin_epoch(CUstream stream) {
    for (Signals& signals : signals_) signals.begin_epoch(stream);
  }
  // Starts the first rank's next epoch with all data and flags of the other ranks present.
  void bring_all(CUstream stream) {
    signals_.front().begin_epoch(stream);
    signals_.front().raise_all(1, stream);
  }

 private:
  Gpu* gpu_;
  std::vector<Signals> signals_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> ended_;
  CUevent begun_;
};

}  // namespace harpe::bench
