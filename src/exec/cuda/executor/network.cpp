#include "exec/cuda/executor/network.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/executor/network_exchange.h"
#include "exec/describe.h"
#include "support/check.h"
#include "support/threads.h"
#include "sync/nodes.h"
#include "transport/make_provider.h"

namespace harpe::cuda {
namespace {

using transport::Endpoint;
using transport::Policy;
using transport::Ring;

// Descriptors in flight to one rank; further ones wait on the GPU.
constexpr std::size_t kRingCapacity = 1024;
// What a ring's writers share, in 64-bit words: two lines of 128 bytes.
constexpr std::int64_t kHeadWords = 32;
constexpr std::int64_t kKnownAt = kHeadWords / 2;

// Host memory that a GPU and the transport access.
struct Window {
  transport::SharedMemory memory;
  PinnedMemory pinned;

  [[nodiscard]] static Checked<Window> make(const Device& device, std::int64_t bytes) {
    HP_TRY(transport::SharedMemory memory, transport::SharedMemory::make(bytes));
    HP_TRY(PinnedMemory pinned, PinnedMemory::pin(device, memory.bytes()));
    return Window{.memory = std::move(memory), .pinned = std::move(pinned)};
  }
  [[nodiscard]] std::byte* at(std::int64_t offset) const {
    return reinterpret_cast<std::byte*>(pinned.address()) + offset;
  }
};

}  // namespace

// A rank of this process.
struct Network::Own {
  int rank = 0;
  Window inbox;
  Window outbox;
  MappedMemory rings;  // of all endpoints, one ring per rank
  DeviceMemory heads;  // likewise
  std::vector<std::unique_ptr<Endpoint>> endpoints;
};

Network::Network(NetworkRequest request)
    : request_(std::move(request)),
      layout_(lay_out_network(*request_.plan, *request_.pages, request_.put_bytes)),
      orders_(processes::order_puts(*request_.plan, sync::puts_of(*request_.plan))) {
  for (const auto& [put, order] : orders_) {
    if (std::ranges::find(fences_, order.fence) == fences_.end()) fences_.push_back(order.fence);
  }
}

Network::~Network() {
  if (proxy_) proxy_->stop();
}

Checked<std::unique_ptr<Network>> Network::open(NetworkRequest request) {
  std::unique_ptr<Network> network(new Network(std::move(request)));
  const Peers& peers = *network->request_.peers;
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    if (peers.is_own(rank)) HP_REQUIRE_OK(network->add(rank));
  }
  HP_REQUIRE_OK(network->connect());
  std::vector<Endpoint*> endpoints;
  for (const auto& [rank, own] : network->own_) {
    for (const auto& endpoint : own->endpoints) endpoints.push_back(endpoint.get());
  }
  network->proxy_.emplace(std::move(endpoints));
  return network;
}

Checked<Ok> Network::add(int rank) {
  const Device& device = request_.peers->device(rank);
  const auto at = static_cast<std::size_t>(rank);
  const std::int64_t rings =
      request_.peers->ranks() * static_cast<std::int64_t>(fences_.size() + 1);
  HP_TRY(Window inbox, Window::make(device, layout_.inbox_bytes[at]));
  HP_TRY(Window outbox, Window::make(device, layout_.outbox_bytes[at]));
  HP_TRY(MappedMemory slots,
         MappedMemory::allocate(device,
                                rings * static_cast<std::int64_t>(Ring::bytes_for(kRingCapacity))));
  HP_TRY(DeviceMemory heads, DeviceMemory::zeros(device, rings * kHeadWords * 2));
  own_[rank] = std::make_unique<Own>(Own{.rank = rank,
                                         .inbox = std::move(inbox),
                                         .outbox = std::move(outbox),
                                         .rings = std::move(slots),
                                         .heads = std::move(heads),
                                         .endpoints = {}});
  return Ok{};
}

// Making an endpoint is collective: each rank of this process has its own thread.
Checked<Ok> Network::connect() {
  if (request_.exchange != nullptr) {
    return connect(*own_.begin()->second, *request_.exchange);
  }
  MeetingPlace place(request_.peers->ranks());
  std::vector<std::optional<Diag>> failures(own_.size());
  run_in_threads(own_.size(), [&](std::size_t rank) {
    const auto exchange = exchange_at(place, static_cast<int>(rank));
    const Checked<Ok> connected = connect(*own_.at(static_cast<int>(rank)), *exchange);
    if (connected.ok()) return;
    failures[rank] = connected.error();
    place.leave();
  });
  // The rank that left explains more than ranks that then failed to meet it.
  std::ranges::stable_partition(failures, [](const auto& failure) {
    return failure && failure->code != DiagCode::N010 && failure->code != DiagCode::N017;
  });
  for (const std::optional<Diag>& failure : failures) {
    if (failure) return *failure;
  }
  return Ok{};
}

Checked<Ok> Network::connect(Own& own, transport::Exchange& exchange) const {
  HP_REQUIRE_OK(add_endpoint(own, std::nullopt, exchange));
  for (const Fence fence : fences_) HP_REQUIRE_OK(add_endpoint(own, fence, exchange));
  return Ok{};
}

Checked<Ok> Network::add_endpoint(Own& own, Policy policy, transport::Exchange& exchange) const {
  HP_TRY(std::unique_ptr<transport::Provider> provider,
         transport::make_provider(request_.options.provider, request_.options.interface));
  const auto ranks = static_cast<std::size_t>(request_.peers->ranks());
  const std::size_t bytes = ranks * Ring::bytes_for(kRingCapacity);
  const transport::EndpointOptions options{
      .rank = own.rank,
      .ranks = request_.peers->ranks(),
      .policy = policy,
      .may_hold = false,
      .ring_capacity = kRingCapacity,
      .ring_memory = own.rings.host().subspan(own.endpoints.size() * bytes, bytes),
      .limit = request_.limit};
  const transport::Region regions[] = {own.inbox.memory.region(), own.outbox.memory.region()};
  HP_TRY(std::unique_ptr<Endpoint> endpoint,
         Endpoint::make(options, std::move(provider), regions, exchange));
  own.endpoints.push_back(std::move(endpoint));
  return Ok{};
}

std::byte* Network::staging(TaskId put) const {
  const auto from = static_cast<int>(rank_of(*request_.plan, put).value);
  return own(from).outbox.at(layout_.puts.at(put).source);
}

std::byte* Network::landing(TaskId put) const {
  const RankId to = destination_of(*request_.plan, request_.plan->tasks[put.index()]);
  return own(static_cast<int>(to.value)).inbox.at(layout_.puts.at(put).destination);
}

const std::uint32_t* Network::signal_word(int rank, std::int32_t index) const {
  return reinterpret_cast<const std::uint32_t*>(own(rank).inbox.at(signal_offset(index)));
}

std::size_t Network::endpoint_of(const launch::Signal& signal) const {
  if (signal.kind != launch::SignalKind::Arrived) return 0;
  const Fence fence = orders_.at(TaskId(signal.index)).fence;
  return static_cast<std::size_t>(std::ranges::find(fences_, fence) - fences_.begin()) + 1;
}

transport::Command Network::command_of(launch::SignalId id) const {
  const launch::Signal& signal = (*request_.pages)[id];
  transport::Command command{
      .operation = transport::Operation::Signal,
      .word = {.region = kInbox, .offset = signal_offset(request_.pages->index_of(id))}};
  if (signal.kind != launch::SignalKind::Arrived) return command;
  const TaskId put(signal.index);
  const PutPlace& place = layout_.puts.at(put);
  const processes::PutOrder& order = orders_.at(put);
  const bool is_alone = order.fence == Fence::PerPut || order.fence == Fence::Immediate;
  command.operation = transport::Operation::PutSignal;
  command.source = {.region = kOutbox, .offset = place.source};
  command.destination = {.region = kInbox, .offset = place.destination};
  command.bytes = place.bytes;
  command.strength = is_alone ? transport::Strength::Weak : transport::Strength::Strong;
  command.follows = order.follows;
  return command;
}

device::RingView Network::ring(const Own& own, std::size_t endpoint, RankId to) const {
  const auto ranks = static_cast<std::size_t>(request_.peers->ranks());
  const std::size_t index = endpoint * ranks + to.index();
  const DeviceAddress slots = own.rings.address() + index * Ring::bytes_for(kRingCapacity);
  auto* const head = reinterpret_cast<std::uint64_t*>(own.heads.address()) +
                     static_cast<std::int64_t>(index) * kHeadWords;
  const DeviceAddress taken = slots + kRingCapacity * sizeof(transport::RingSlot);
  return {.slots = reinterpret_cast<transport::RingSlot*>(slots),
          .taken = reinterpret_cast<const std::uint64_t*>(taken),
          .head = head,
          .known = head + kKnownAt,
          .capacity = kRingCapacity};
}

device::Post Network::post_of(int from, launch::SignalId id) const {
  const launch::Signal& posted = (*request_.pages)[id];
  const auto page = request_.pages->page(RankId(from));
  const auto room = std::ranges::find_if(page, [&](const launch::Signal& signal) {
    return signal.kind == launch::SignalKind::RingSpace && signal.index == posted.rank.value;
  });
  HP_CHECK(room != page.end(), "a ring that is posted to has a name");
  device::Post post{.ring = ring(own(from), endpoint_of(posted), posted.rank),
                    .words = {},
                    .name = static_cast<std::uint32_t>(room - page.begin())};
  const transport::Words words = transport::encode(command_of(id));
  std::copy_n(words.begin(), std::size(post.words), post.words);
  return post;
}

std::optional<transport::TransportError> Network::error() const {
  for (const auto& [rank, own] : own_) {
    for (const auto& endpoint : own->endpoints) {
      if (auto error = endpoint->error()) return error;
    }
  }
  return std::nullopt;
}

std::map<Fence, transport::Counters> Network::counters() const {
  std::map<Fence, transport::Counters> all;
  for (const auto& [rank, own] : own_) {
    for (std::size_t at = 0; at < fences_.size(); ++at) {
      all[fences_[at]] += own->endpoints[at + 1]->counters();
    }
  }
  return all;
}

}  // namespace harpe::cuda
