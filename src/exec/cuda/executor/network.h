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
  const Plan* plan = nullptr;  // these must outlive the network
  const SignalPages* pages = nullptr;
  const Peers* peers = nullptr;
  std::map<TaskId, std::int64_t> put_bytes = {};  // of each put's image
  transport::Exchange* exchange = nullptr;  // to ranks in other processes; null if there are none
  NetworkOptions options = {};
  std::chrono::milliseconds limit{10'000};  // of each wait of a proxy
};

// The network side of this process's ranks: pinned memory that kernels and the transport both
// access, rings that kernels write, and one proxy thread that serves them. Each rank has one
// endpoint for signals without puts, which need no order, and one for each fence of its puts.
class Network {
 public:
  // Collective over all processes. Errors: G005, N001, N002, N003, N010, N013.
  [[nodiscard]] static Checked<std::unique_ptr<Network>> open(NetworkRequest request);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  // Requires: no other rank puts into this memory any more.
  ~Network();

  // The addresses of a put's images, for kernels. Requires, as all below: of a rank of this
  // process.
  [[nodiscard]] std::byte* staging(TaskId put) const;
  [[nodiscard]] std::byte* landing(TaskId put) const;
  // The word of a posted signal in the rank's inbox.
  [[nodiscard]] const std::uint32_t* signal_word(int rank, std::int32_t index) const;
  // The descriptor that raises a posted signal; for an Arrived signal, its put too.
  [[nodiscard]] device::Post post_of(int from, launch::SignalId signal) const;

  // The error that ended an endpoint, if any.
  [[nodiscard]] std::optional<transport::TransportError> error() const;
  // Over all ranks of this process, by fence.
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
  // Index of the endpoint that a signal uses.
  [[nodiscard]] std::size_t endpoint_of(const launch::Signal& signal) const;
  [[nodiscard]] device::RingView ring(const Own& own, std::size_t endpoint, RankId to) const;

  NetworkRequest request_;
  NetworkLayout layout_;
  std::map<TaskId, processes::PutOrder> orders_;
  std::vector<Fence> fences_;  // of puts; their endpoints follow the one for signals alone
  std::map<int, std::unique_ptr<Own>> own_;  // by rank
  std::optional<transport::Proxy> proxy_;
};

}  // namespace harpe::cuda
