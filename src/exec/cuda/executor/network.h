#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/executor/network_layout.h"
#include "exec/cuda/executor/network_options.h"
#include "exec/cuda/runtime/host_memory.h"
#include "exec/cuda/signals/device/post_args.h"
#include "exec/cuda/signals/peers.h"
#include "exec/processes/put_orders.h"
#include "transport/proxy.h"
#include "transport/shared_memory.h"

namespace harpe::cuda {

struct NetworkRequest {
  const Plan* plan = nullptr;  // these outlive the network
  const SignalPages* pages = nullptr;
  const Peers* peers = nullptr;
  std::map<TaskId, std::int64_t> put_bytes = {};  // of each put's image
  transport::Exchange* exchange = nullptr;  // to ranks in other processes, where there are any
  NetworkOptions options = {};
  std::chrono::milliseconds limit{10'000};  // of each wait of a proxy
};

// The ranks of this process on the network: pinned memory that kernels and the transport both
// reach, rings that kernels write, and one proxy thread that serves them. One endpoint a rank for
// signals alone, which need no order, and one for each fence of its puts.
class Network {
 public:
  // All processes together. Errors: G005, N001, N002, N003, N010, N013.
  [[nodiscard]] static Checked<std::unique_ptr<Network>> open(NetworkRequest request);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  // Requires: no other rank puts into these any more.
  ~Network();

  // Where a put's image lies, for kernels. Requires: of a rank of this process, like all below.
  [[nodiscard]] std::byte* staging(TaskId put) const;
  [[nodiscard]] std::byte* landing(TaskId put) const;
  // Of a signal that is posted, in the rank's inbox.
  [[nodiscard]] const std::uint32_t* signal_word(int rank, std::int32_t index) const;
  // What raises a signal that is posted; of an Arrived signal its put too.
  [[nodiscard]] device::Post post_of(int from, launch::SignalId signal) const;

  // What ended an endpoint, if anything did.
  [[nodiscard]] std::optional<transport::TransportError> error() const;
  // Of all ranks of this process, by fence.
  [[nodiscard]] std::map<Fence, transport::Counters> counters() const;

 private:
  struct Own;
  explicit Network(NetworkRequest request);
  [[nodiscard]] Checked<Ok> add(int rank);
  [[nodiscard]] Checked<Ok> connect();
  [[nodiscard]] Checked<Ok> connect(Own& own, transport::Exchange& exchange) const;
  [[nodiscard]] Checked<Ok> add_endpoint(Own& own, transport::Policy policy,
                                         transport::Exchange& exchange) const;
  [[nodiscard]] const Own& own(int rank) const { return *own_.at(rank); }
  [[nodiscard]] transport::Command command_of(launch::SignalId id) const;
  // Of the endpoint that a signal goes by.
  [[nodiscard]] std::size_t endpoint_of(const launch::Signal& signal) const;
  [[nodiscard]] device::RingView ring(const Own& own, std::size_t endpoint, RankId to) const;

  NetworkRequest request_;
  NetworkLayout layout_;
  std::map<TaskId, processes::PutOrder> orders_;
  std::vector<Fence> fences_;  // of puts; each has an endpoint, behind that for signals alone
  std::map<int, std::unique_ptr<Own>> own_;  // by rank
  std::optional<transport::Proxy> proxy_;
};

}  // namespace harpe::cuda
