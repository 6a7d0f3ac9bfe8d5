#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/cpu/far_puts.h"
#include "exec/cpu/marking.h"
#include "exec/cpu/windows.h"
#include "exec/executor.h"
#include "transport/proxy.h"

namespace harpe::cpu {

struct NetworkOptions {
  std::string provider = "tcp;ofi_rxm";     // of libfabric
  std::string interface = "";               // "": the provider chooses
  std::chrono::milliseconds limit{10'000};  // of each wait
};

// How this process's ranks reach those of other processes: signals in memory that processes of one
// host share; one endpoint of the transport (docs/transport.md) for each policy of the puts'
// signals; and one more for signals that no put must precede. The thread that calls `look` polls
// the signals that others set here, and wakes the queues that wait for them.
class Network final : public Outside {
 public:
  // Errors: N001 to N003, N010.
  [[nodiscard]] static Checked<std::unique_ptr<Network>> open(
      const processes::Partition& partition, const Windows& windows, std::int32_t queues,
      std::vector<std::optional<FarPut>> puts, const std::vector<QueueId>& queue_of,
      const NetworkOptions& options, transport::Exchange& exchange);
  ~Network() override;

  [[nodiscard]] std::int64_t read(std::int32_t flag) const override;
  void raise(const Outgoing& flag, std::int64_t epoch) override;
  [[nodiscard]] bool post(TaskId task, const std::vector<Outgoing>& behind,
                          std::int64_t epoch) override;

  // Wakes the queues that wait for signals that have changed, and completes finished puts. Returns
  // whether there were any. One caller at a time.
  bool look(Marking& marking, const Marking::Wake& wake);
  // Reports progress to all other processes; and the sum of their reports.
  void tell_progress();
  [[nodiscard]] std::uint64_t progress_of_others() const;

  // The transport's first error.
  [[nodiscard]] std::optional<transport::TransportError> error() const;
  // Another process has stopped or exited: no more progress is expected.
  void give_up() { is_given_up_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_given_up() const { return is_given_up_.load(std::memory_order_relaxed); }

  // Puts this process's part of `buffers` into process 0's mirror, if that is on another host;
  // returns once the data has arrived.
  [[nodiscard]] transport::Outcome<Ok> mirror(const Plan& plan,
                                              const std::vector<std::string>& buffers);
  [[nodiscard]] NetworkStats stats() const;

 private:
  // A put in flight, including all puts before it in its queue.
  struct Pending {
    TaskId task;
    std::int64_t epoch = 0;
    transport::Endpoint* endpoint = nullptr;
    int process = 0;
    std::optional<transport::Ticket> last;  // none: nothing had to be moved
  };

  Network(const processes::Partition& partition, const Windows& windows, std::int32_t queues,
          std::vector<std::optional<FarPut>> puts, const std::vector<QueueId>& queue_of);
  [[nodiscard]] Checked<Ok> connect(const NetworkOptions& options, transport::Exchange& exchange);
  [[nodiscard]] transport::Outcome<std::optional<transport::Ticket>> send(
      transport::Endpoint& endpoint, const FarPut& put, const std::vector<FarPut::Run>& runs,
      const std::vector<Outgoing>& behind, std::int64_t epoch);
  bool complete_puts(Marking& marking, const Marking::Wake& wake);

  processes::Partition partition_;
  const Windows& windows_;
  std::vector<std::optional<FarPut>> puts_;     // per task
  std::vector<std::vector<FarPut::Run>> runs_;  // per queue, of its current put
  std::vector<std::size_t> queue_of_;           // per task
  std::map<Fence, std::unique_ptr<transport::Endpoint>> endpoints_;  // by their signals' fence
  std::unique_ptr<transport::Endpoint> control_;  // none if all processes are on one host
  std::unique_ptr<transport::Proxy> proxy_;

  std::mutex mutex_;
  std::vector<std::deque<Pending>> pending_;  // per queue; guarded by mutex_, as is:
  std::int64_t pending_count_ = 0;
  std::vector<std::uint32_t> seen_;  // per signal that others set
  std::uint32_t progress_ = 0;
  std::atomic<bool> is_given_up_{false};
};

}  // namespace harpe::cpu
