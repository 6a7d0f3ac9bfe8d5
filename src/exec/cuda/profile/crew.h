#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/kernels/prepared_launches.h"
#include "exec/cuda/runtime/graph.h"
#include "exec/cuda/signals/peers.h"
#include "exec/cuda/signals/signal_kernels.h"

namespace harpe::cuda::profile {

struct CrewRequest {
  int gpus = 0;  // 0: all GPUs
  std::optional<std::string> kernel_cache;
  std::optional<std::string> nvrtc;
  std::vector<std::string> cuda_folders;
};

// Parts of a GPU's arena: the source, which holds random numbers, and the target.
inline constexpr std::int64_t kSourceBytes = std::int64_t{2} << 30;
inline constexpr std::int64_t kTargetBytes = std::int64_t{2} << 30;
inline constexpr std::int32_t kPageSignals = 512;  // in one page of signals

// One GPU and the resources to enqueue its work.
struct Member {
  int rank = 0;
  const Device* device = nullptr;
  std::unique_ptr<KernelLibrary> kernels;
  std::optional<SignalKernels> signals;
  std::vector<Stream> queues;  // the first is timed
  DeviceAddress source = 0;
  DeviceAddress target = 0;

  [[nodiscard]] const Stream& queue(std::size_t index = 0) const { return queues[index]; }
};

// Enqueues a GPU's part of a measurement in its queues, which must all join the first queue again.
// Keeps alive what it enqueues.
using Order = std::function<Checked<Ok>(const Member&)>;

// A captured measurement: a graph on each participating GPU.
struct Trial {
  double units = 1;  // units per graph; times are per unit
  std::vector<std::optional<Graph>> work;
  std::vector<std::optional<Graph>> background;  // runs beside `work`, and longer
  std::vector<Order> orders;                     // keep alive what the graphs use
};

// The measured GPUs, with peer access.
class Crew {
 public:
  // Errors: G070 fewer GPUs than requested; those of Peers::open, Nvrtc::open and loading kernels.
  [[nodiscard]] static Checked<std::unique_ptr<Crew>> open(const CrewRequest& request);

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] const Member& member(int rank) const {
    return members_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Peers& peers() { return peers_; }
  [[nodiscard]] std::int64_t free_bytes() const { return free_bytes_; }

  // Captures what `prepare` returns for each GPU; GPUs with an empty one do not take part. Errors:
  // those of prepare; G005.
  using Prepare = std::function<Checked<Order>(const Member&)>;
  [[nodiscard]] Checked<Trial> capture(double units, const Prepare& prepare) const;
  // The same, as the background of a trial.
  [[nodiscard]] Checked<Ok> add_background(Trial& trial, const Prepare& prepare) const;

  // Seconds per unit of each trial: of the slowest GPU, the median of rounds that run all trials in
  // turn, after one warm-up round. Signals restart in each turn. Errors: G005; N017.
  [[nodiscard]] Checked<std::vector<double>> time(const std::vector<Trial>& trials);

 private:
  explicit Crew(Peers peers) : peers_(std::move(peers)) {}
  [[nodiscard]] Checked<Ok> add_member(int rank, const Nvrtc& compiler, const CrewRequest& request);
  [[nodiscard]] Checked<Ok> fill(const Member& member, std::span<const std::byte> block) const;
  using Times = std::vector<std::vector<double>>;  // by trial, then by round
  [[nodiscard]] Checked<Ok> take_turns(const std::vector<Trial>& trials, const Member& member,
                                       std::barrier<>& together, Times& times);
  [[nodiscard]] Checked<double> turn(const Trial& trial, const Member& member, const Event& begin,
                                     const Event& end) const;

  Peers peers_;
  std::vector<Member> members_;
  std::int64_t free_bytes_ = 0;
};

// fork: queues 1 to queues - 1 wait for the first; join: the first waits for them.
[[nodiscard]] Checked<Ok> fork(const Member& member, std::size_t queues);
[[nodiscard]] Checked<Ok> join(const Member& member, std::size_t queues);

// N017: an expired wait.
[[nodiscard]] Diag lost_signal(int gpu, const device::FaultRecord& record);

// A result of the driver as a refusal.
[[nodiscard]] inline Checked<Ok> checked(const Result<Ok, CudaError>& result) {
  if (!result.ok()) return to_diag(result.error());
  return Ok{};
}

}  // namespace harpe::cuda::profile
