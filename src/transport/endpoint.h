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

// Where data comes from, here, and goes to, on another rank.
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
  bool may_hold = true;  // without a policy: signals may wait for the end of their epoch
  std::size_t ring_capacity = 1024;  // descriptors under way to one rank
  // Kernels of a GPU write the descriptors, and no thread: `Ring::bytes_for` for each rank.
  std::span<std::byte> ring_memory{};
  std::chrono::milliseconds limit{10'000};  // of each wait
};

// One rank's end: puts into the registered memory of others and signals about them, through one
// ring per rank. Any thread may call; a proxy (proxy.h) must turn it, and go on until nobody puts
// into this rank any more. The first error ends it, and everybody who waits learns of it.
class Endpoint {
 public:
  // All ranks make theirs together. Errors: N002, N003, N010, N022.
  [[nodiscard]] static Checked<std::unique_ptr<Endpoint>> make(const EndpointOptions& options,
                                                               std::unique_ptr<Provider> provider,
                                                               std::span<const Region> regions,
                                                               Exchange& exchange);

  // These return when the descriptor is in the ring. Errors: Expired where it stays full, Malformed
  // where the command would leave registered memory.
  [[nodiscard]] Outcome<Ticket> put(int peer, const Transfer& transfer);
  [[nodiscard]] Outcome<Ticket> put_signal(int peer, const Transfer& transfer,
                                           const Signal& signal);
  [[nodiscard]] Outcome<Ticket> signal(int peer, const Signal& signal);
  // What follows to this rank comes after what precedes. Nobody waits for it.
  [[nodiscard]] Outcome<Ticket> fence(int peer);

  // Whether that put and all earlier ones to the rank are placed there, as far as completions of
  // the provider say so (Guarantees::remote_completion).
  [[nodiscard]] bool is_placed(int peer, Ticket ticket) const {
    return rings_[static_cast<std::size_t>(peer)]->sent() > ticket;
  }

  // Waits until the sources of everything so far may be written again.
  [[nodiscard]] Outcome<Ok> flush(int peer);
  // Waits until everything so far is complete on the other rank, its signals too.
  [[nodiscard]] Outcome<Ok> quiet(int peer);
  [[nodiscard]] Outcome<Ok> quiet_all();

  // Until this rank's own signal is at least `value`: acquire, so that what its signal covers may
  // be read then. `from` is who is expected to raise it.
  [[nodiscard]] Outcome<Ok> wait(Place word, std::uint32_t value, int from);
  [[nodiscard]] std::uint32_t read(Place word) const;

  [[nodiscard]] const Strategy& strategy() const { return strategy_; }
  [[nodiscard]] const Provider& provider() const { return *provider_; }
  [[nodiscard]] Counters counters(int peer) const { return sender_->counters(peer); }
  [[nodiscard]] Counters counters() const;  // of all ranks

  // The proxy's: whether anything happened.
  bool turn();
  // The error that ended it.
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
