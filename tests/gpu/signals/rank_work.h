#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/runtime/graph.h"
#include "exec/cuda/signals/peers.h"
#include "exec/cuda/signals/signal_kernels.h"

namespace harpe::cuda::signals_test {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// The signals in every rank's page.
enum Signal : std::int32_t { kData, kCredit, kAllWrote, kAllRead, kSignals };

// An arena: the rank's own block, the block from the previous rank, and a count of wrong words.
constexpr std::int64_t kBlockWords = 16 * 1024;
constexpr std::int64_t kBlockBytes = kBlockWords * 4;
constexpr std::int64_t kArenaBytes = 2 * kBlockBytes + 512;

struct WorkOptions {
  std::chrono::nanoseconds limit = 5s;  // of one wait
  std::uint32_t most_delay_ns = 4000;   // the longest random sleep of a kernel
  bool says_that_data_is_there = true;
};

// The kernels of one GPU.
struct Kernels {
  static Checked<Kernels> load(KernelLibrary& library);

  SignalKernels signals;
  const LoadedKernel* fill;
  const LoadedKernel* check;
  const LoadedKernel* sleep;
};

// The work of one rank per epoch, as a graph, and its replays.
class RankWork {
 public:
  static Checked<RankWork> create(const Peers& peers, int rank, const Kernels& kernels,
                                  const WorkOptions& options);

  // Puts its block into the next rank's slot, and checks the block that the previous rank put.
  Checked<Ok> capture_ring();
  // Makes its block, checks all ranks' blocks after all are made, and continues after all checks.
  Checked<Ok> capture_barriers();

  // Replays back to back, with few enough runs in flight that launches do not block.
  Checked<Ok> replay(std::int64_t times);
  // Wrong words found in all runs.
  [[nodiscard]] Checked<std::uint32_t> wrong_words() const;

 private:
  struct Queue {
    Stream stream;
    Event reached;
  };
  RankWork(const Peers& peers, int rank, const Kernels& kernels, const WorkOptions& options,
           Queue main, Queue side)
      : peers_(&peers),
        rank_(rank),
        kernels_(kernels),
        options_(options),
        main_(std::move(main)),
        side_(std::move(side)) {}
  static Checked<Queue> make_queue(const Device& device);

  Result<Ok, CudaError> begin_epoch() const;
  Result<Ok, CudaError> put() const;      // main queue of the ring
  Result<Ok, CudaError> receive() const;  // side queue
  Result<Ok, CudaError> order_ring() const;
  Result<Ok, CudaError> order_barriers() const;
  Result<Ok, CudaError> barrier(Signal counter) const;
  Result<Ok, CudaError> fill() const;
  Result<Ok, CudaError> check(const Stream& stream, DeviceAddress block, int maker) const;
  Result<Ok, CudaError> sleep(const Stream& stream, std::uint32_t salt) const;
  Checked<Ok> capture(Result<Ok, CudaError> (RankWork::*order)() const);

  [[nodiscard]] const Device& device() const { return peers_->device(rank_); }
  [[nodiscard]] const SignalAddresses& own() const { return peers_->signals(rank_); }
  [[nodiscard]] int next() const { return (rank_ + 1) % peers_->ranks(); }
  [[nodiscard]] int previous() const { return (rank_ + peers_->ranks() - 1) % peers_->ranks(); }

  const Peers* peers_;
  int rank_;
  Kernels kernels_;
  WorkOptions options_;
  Queue main_;
  Queue side_;
  std::optional<Graph> graph_;
};

// The folder for compiled kernels that the environment names, if any.
std::optional<std::string> cache_folder();

}  // namespace harpe::cuda::signals_test
