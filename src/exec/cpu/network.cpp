#include "exec/cpu/network.h"

#include <algorithm>
#include <array>
#include <set>

#include "exec/processes/put_orders.h"
#include "support/check.h"
#include "transport/make_provider.h"

namespace harpe::cpu {
namespace {

using transport::Endpoint;
using transport::Follows;
using transport::Outcome;
using transport::Place;
using transport::Policy;
using transport::Signal;
using transport::Ticket;

// Regions that every process registers; in process 0 one mirror follows for each process of other
// hosts, in their order.
constexpr std::int32_t kSignals = 0;
constexpr std::int32_t kWindows = 1;
constexpr std::int32_t kMirrors = 2;

Place place_of(std::int32_t flag) {
  return {.region = kSignals, .offset = flag * static_cast<std::int64_t>(sizeof(std::uint32_t))};
}

Signal set(std::int32_t flag, std::int64_t value, Follows follows) {
  return {.word = place_of(flag), .value = static_cast<std::uint32_t>(value), .follows = follows};
}

}  // namespace

Network::Network(const processes::Partition& partition, const Windows& windows, std::int32_t queues,
                 std::vector<std::optional<FarPut>> puts, const std::vector<QueueId>& queue_of)
    : partition_(partition),
      windows_(windows),
      puts_(std::move(puts)),
      runs_(static_cast<std::size_t>(queues)),
      pending_(static_cast<std::size_t>(queues)) {
  for (const QueueId queue : queue_of) queue_of_.push_back(queue.index());
  seen_.resize(windows.signals_of(partition.process).size());
}

Network::~Network() = default;

Checked<std::unique_ptr<Network>> Network::open(const processes::Partition& partition,
                                                const Windows& windows, std::int32_t queues,
                                                std::vector<std::optional<FarPut>> puts,
                                                const std::vector<QueueId>& queue_of,
                                                const NetworkOptions& options,
                                                transport::Exchange& exchange) {
  std::unique_ptr<Network> network(
      new Network(partition, windows, queues, std::move(puts), queue_of));
  if (partition.has_far()) HP_REQUIRE_OK(network->connect(options, exchange));
  return network;
}

Checked<Ok> Network::connect(const NetworkOptions& options, transport::Exchange& exchange) {
  const std::span<std::uint32_t> signals = windows_.signals_of(partition_.process);
  std::vector<transport::Region> regions = {{.bytes = std::as_writable_bytes(signals)},
                                            {.bytes = windows_.own()}};
  for (int process = 0; partition_.process == 0 && process < partition_.processes; ++process) {
    if (!partition_.is_near(process)) regions.push_back({.bytes = windows_.windows_of(process)});
  }
  std::set<Fence> own;
  for (const std::optional<FarPut>& put : puts_) {
    if (put) own.insert(put->fence);
  }
  // Making an endpoint is collective: all processes make one for each policy that any of them has.
  const std::vector<Fence> fences(own.begin(), own.end());
  HP_TRY(const auto all, exchange.all_gather(std::as_bytes(std::span(fences))));
  for (const transport::Blob& blob : all) {
    for (const std::byte each : blob) own.insert(static_cast<Fence>(each));
  }
  const auto make = [&](Policy policy) -> Checked<std::unique_ptr<Endpoint>> {
    HP_TRY(auto provider, transport::make_provider(options.provider, options.interface));
    if (!provider->given().remote_completion) {
      return make_diag(DiagCode::N003, {{"policy", transport::print_policy(policy)},
                                        {"needed", "remote completion of puts"},
                                        {"provider", options.provider}});
    }
    return Endpoint::make({.rank = partition_.process,
                           .ranks = partition_.processes,
                           .policy = policy,
                           .may_hold = policy.has_value(),
                           .limit = options.limit},
                          std::move(provider), regions, exchange);
  };
  HP_TRY(control_, make(std::nullopt));
  std::vector<Endpoint*> turned = {control_.get()};
  for (const Fence fence : own) {
    HP_TRY(endpoints_[fence], make(fence));
    turned.push_back(endpoints_[fence].get());
  }
  proxy_ = std::make_unique<transport::Proxy>(turned);
  return Ok{};
}

// Acquire: pairs with the raiser's release store; what precedes the raise is visible after this
// load.
std::int64_t Network::read(std::int32_t flag) const {
  std::uint32_t& signal = windows_.signals_of(partition_.process)[static_cast<std::size_t>(flag)];
  return std::atomic_ref(signal).load(std::memory_order_acquire);
}

void Network::raise(const Outgoing& flag, std::int64_t epoch) {
  if (partition_.is_near(flag.process)) {
    std::uint32_t& signal = windows_.signals_of(flag.process)[static_cast<std::size_t>(flag.flag)];
    std::atomic_ref(signal).store(static_cast<std::uint32_t>(epoch), std::memory_order_release);
    return;
  }
  // On failure the endpoint ends; `error` reports it.
  static_cast<void>(control_->signal(flag.process, set(flag.flag, epoch, Follows::Nothing)));
}

Outcome<std::optional<Ticket>> Network::send(Endpoint& endpoint, const FarPut& put,
                                             const std::vector<FarPut::Run>& runs,
                                             const std::vector<Outgoing>& behind,
                                             std::int64_t epoch) {
  std::optional<Ticket> last;
  const auto follows = [&](std::size_t signal) {
    return signal + 1 == behind.size() ? put.follows : Follows::Group;
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const transport::Transfer transfer{.source = {.region = kWindows, .offset = runs[i].from},
                                       .destination = {.region = kWindows, .offset = runs[i].to},
                                       .bytes = runs[i].bytes};
    if (i + 1 == runs.size() && !behind.empty()) {
      HP_TRY(last, endpoint.put_signal(put.process, transfer,
                                       set(behind.front().flag, epoch, follows(0))));
    } else {
      HP_TRY(last, endpoint.put(put.process, transfer));
    }
  }
  for (std::size_t signal = runs.empty() ? 0 : 1; signal < behind.size(); ++signal) {
    HP_REQUIRE_OK(endpoint.signal(put.process, set(behind[signal].flag, epoch, follows(signal))));
  }
  return last;
}

bool Network::post(TaskId task, const std::vector<Outgoing>& behind, std::int64_t epoch) {
  const FarPut& put = *puts_[task.index()];
  const std::size_t queue = queue_of_[task.index()];
  Endpoint& endpoint = *endpoints_.at(put.fence);
  collect_runs(put, windows_, runs_[queue]);
  const auto last = send(endpoint, put, runs_[queue], behind, epoch);
  if (!last.ok()) return false;
  const std::lock_guard lock(mutex_);
  pending_[queue].push_back(
      {.task = task, .epoch = epoch, .endpoint = &endpoint, .process = put.process, .last = *last});
  ++pending_count_;
  return true;
}

bool Network::look(Marking& marking, const Marking::Wake& wake) {
  bool any = false;
  for (const ProcessSignal& signal : marking.signals().signals) {
    if (signal.flag < 0) continue;
    std::uint32_t& seen = seen_[static_cast<std::size_t>(signal.flag)];
    const auto now = static_cast<std::uint32_t>(read(signal.flag));
    if (now == seen) continue;
    seen = now;
    any = true;
    for (const std::int32_t queue : signal.waiters) wake(queue);
  }
  return complete_puts(marking, wake) || any;
}

bool Network::complete_puts(Marking& marking, const Marking::Wake& wake) {
  std::vector<Pending> over;
  {
    const std::lock_guard lock(mutex_);
    if (pending_count_ == 0) return false;
    for (std::deque<Pending>& queue : pending_) {
      while (!queue.empty()) {
        const Pending& first = queue.front();
        if (first.last && !first.endpoint->is_placed(first.process, *first.last)) break;
        over.push_back(first);
        queue.pop_front();
        --pending_count_;
      }
    }
  }
  for (const Pending& put : over) marking.complete(put.task, put.epoch, wake);
  return !over.empty();
}

void Network::tell_progress() {
  ++progress_;
  for (int process = 0; process < partition_.processes; ++process) {
    if (process == partition_.process) continue;
    raise({.process = process, .flag = partition_.process}, progress_);
  }
}

std::uint64_t Network::progress_of_others() const {
  std::uint64_t sum = 0;
  for (int process = 0; process < partition_.processes; ++process) {
    sum += static_cast<std::uint64_t>(read(process));
  }
  return sum;
}

std::optional<transport::TransportError> Network::error() const {
  for (const auto& [fence, endpoint] : endpoints_) {
    if (auto error = endpoint->error()) return error;
  }
  return control_ ? control_->error() : std::nullopt;
}

Outcome<Ok> Network::mirror(const Plan& plan, const std::vector<std::string>& buffers) {
  if (partition_.is_near(0)) return Ok{};
  for (const Alloc& alloc : plan.allocs) {
    const bool is_asked = std::ranges::find(buffers, alloc.buffer) != buffers.end();
    if (!is_asked || alloc.level != Level::Home || !partition_.is_own(alloc.rank)) continue;
    const auto place = windows_.find(windows_.bases().address(alloc));
    HP_REQUIRE_OK(control_->put(
        0, {.source = {.region = kWindows, .offset = place->offset},
            .destination = {.region = kMirrors + partition_.process - partition_.processes_per_host,
                            .offset = place->offset},
            .bytes = alloc.bytes}));
  }
  return control_->quiet(0);
}

NetworkStats Network::stats() const {
  NetworkStats stats;
  for (const auto& [fence, endpoint] : endpoints_) {
    const transport::Counters counters = endpoint->counters();
    stats += {.puts = counters.puts,
              .bytes = counters.bytes,
              .signals = counters.signals,
              .nic_fences = counters.nic_fences,
              .quiets = counters.quiets,
              .stalled = std::chrono::nanoseconds(counters.stalled_ns)};
  }
  return stats;
}

}  // namespace harpe::cpu
