#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "transport/exchange.h"
#include "transport/sender.h"

namespace harpe::transport {

// The source of data here, and its destination on another rank.
struct Transfer {
  Place source{};
  Place destination{};
  std::int64_t bytes = 0;
};

struct Signal {
  Place word{};
  std::uint32_t value = 0;
  SignalMode mode = SignalMode::Set;
  Strength strength = Strength::Strong;
  Follows follows = Follows::Nothing;
};

struct EndpointOptions {
  int rank = 0;
  int ranks = 1;
  Policy policy = {};
  bool may_hold = true;              // without a policy: signals may be held until their epoch ends
  std::size_t ring_capacity = 1024;  // descriptors in flight to one rank
  // If kernels of a GPU, and no threads, write descriptors: `Ring::bytes_for` bytes per rank.
  std::span<std::byte> ring_memory{};
  std::chrono::milliseconds limit{10'000};  // of each wait
};

// One rank's end: puts into the registered memory of other ranks and raises signals there, through
// one ring per rank. Any thread may call. A proxy (proxy.h) must turn it until no rank puts into
// this rank any more. The first error ends it and all waits on it.
class Endpoint {
 public:
  // Collective. Errors: N002, N003, N010, N022.
  [[nodiscard]] static Checked<std::unique_ptr<Endpoint>> make(const EndpointOptions& options,
                                                               std::unique_ptr<Provider> provider,
                                                               std::span<const Region> regions,
                                                               Exchange& exchange);

  // These return when the descriptor is in the ring. Errors: Expired if the ring stays full,
  // Malformed if the command would leave registered memory.
  [[nodiscard]] Outcome<Ticket> put(int peer, const Transfer& transfer);
  [[nodiscard]] Outcome<Ticket> put_signal(int peer, const Transfer& transfer,
                                           const Signal& signal);
  [[nodiscard]] Outcome<Ticket> signal(int peer, const Signal& signal);
  // Orders what follows to this rank after what precedes, without a wait.
  [[nodiscard]] Outcome<Ticket> fence(int peer);

  // Whether this put and all earlier ones to the rank are placed there, if the provider's
  // completions state that (Guarantees::remote_completion).
  [[nodiscard]] bool is_placed(int peer, Ticket ticket) const {
    return rings_[static_cast<std::size_t>(peer)]->sent() > ticket;
  }

  // Waits until the sources of all commands so far may be overwritten.
  [[nodiscard]] Outcome<Ok> flush(int peer);
  // Waits until all commands so far are complete on the other rank, signals included.
  [[nodiscard]] Outcome<Ok> quiet(int peer);
  [[nodiscard]] Outcome<Ok> quiet_all();

  // Waits until this rank's own signal is at least `value`. Acquire: the data that the signal
  // covers may be read afterwards. `from`: the rank that should raise it.
  [[nodiscard]] Outcome<Ok> wait(Place word, std::uint32_t value, int from);
  [[nodiscard]] std::uint32_t read(Place word) const;

  [[nodiscard]] const Strategy& strategy() const { return strategy_; }
  [[nodiscard]] const Provider& provider() const { return *provider_; }
  [[nodiscard]] Counters counters(int peer) const { return sender_->counters(peer); }
  [[nodiscard]] Counters counters() const;  // of all ranks

  // Called by the proxy; returns whether anything happened.
  bool turn();
  // The error that ended this endpoint.
  [[nodiscard]] std::optional<TransportError> error() const;

 private:
  Endpoint(const EndpointOptions& options, std::unique_ptr<Provider> provider);
  [[nodiscard]] std::unique_ptr<Ring> make_ring(std::size_t peer) const;
  [[nodiscard]] Checked<Ok> join(std::span<const Region> regions, Exchange& exchange);
  [[nodiscard]] Outcome<Ticket> push(int peer, const Command& command);
  [[nodiscard]] Outcome<Ok> wait_until(int peer, const std::string& what,
                                       const std::function<bool()>& is_there);
  [[nodiscard]] Outcome<Ok> wait_completed(int peer, Ticket ticket);
  [[nodiscard]] TransportError expired(int peer, std::string what, Deadline since) const;
  [[nodiscard]] std::uint32_t* find(Place word) const;

  EndpointOptions options_;
  Strategy strategy_;
  std::vector<Region> regions_;
  std::vector<std::vector<std::int64_t>> sizes_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Sender> sender_;

  std::atomic<bool> is_over_{false};
  mutable std::mutex error_lock_;
  std::optional<TransportError> error_;
};

}  // namespace harpe::transport
