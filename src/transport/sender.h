#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "transport/counters.h"
#include "transport/ordering.h"
#include "transport/provider.h"
#include "transport/ring.h"

namespace harpe::transport {

// Executes one rank's descriptors under a strategy: takes them from the rings, posts puts and
// signals, holds signals back and waits. It never blocks: a step returns while it waits, so that
// one thread can turn several ranks.
class Sender {
 public:
  struct Options {
    int rank = 0;
    Strategy strategy{};
    std::chrono::milliseconds limit{10'000};  // of each wait
  };
  // `sizes`: of all ranks' regions. One ring per rank, its own included; they must outlive this.
  Sender(Options options, Provider& provider, std::vector<std::vector<std::int64_t>> sizes,
         std::vector<std::unique_ptr<Ring>>& rings);

  // One round over completions and rings; returns whether anything happened. Ends with the first
  // error.
  [[nodiscard]] Outcome<bool> step();

  [[nodiscard]] Counters counters(int peer) const {
    return peers_[static_cast<std::size_t>(peer)].counters.read();
  }

 private:
  // A signal and its descriptor.
  struct Held {
    SignalUpdate update{};
    Ticket ticket = 0;
  };
  struct Peer {
    std::deque<std::uint8_t> parts;  // of each incomplete descriptor from `first` on
    Ticket first = 0;
    Ticket sent = 0;               // all puts below are complete
    std::int64_t outstanding = 0;  // posted and not complete
    bool fenced = false;           // the next command is ordered after all earlier ones
    std::vector<Held> held;
    bool has_open_group = false;  // more signals of its held group will come
    LiveCounters counters;
  };
  struct Action {
    enum class Kind : std::uint8_t { Put, Signal, Quiet };
    Kind kind = Kind::Put;
    bool quiet_all_ranks = false;
    Write put{};
    SignalWrite signal{};
    int peer = 0;
  };

  [[nodiscard]] Peer& peer(int number) { return peers_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] Ring& ring(int number) { return *rings_[static_cast<std::size_t>(number)]; }

  [[nodiscard]] Outcome<bool> turn_provider();
  [[nodiscard]] Outcome<bool> take(int from);
  void expand(int to, Ticket ticket, const Command& command);
  void expand_put(int to, Ticket ticket, const Command& command, bool fence);
  [[nodiscard]] bool travels_with_put(const Command& command) const;
  void end_batch(int to, Follows follows);
  void hold_back(int to, const Held& signal);
  void release(int to);
  void expand_order(int to, Operation operation);
  void begin_epoch_end(int cause);
  void end_epoch(int cause);
  [[nodiscard]] bool is_epoch_taken();

  void add_quiet(int to, bool all);
  void add_signal(int to, const Held& signal, bool fence);

  // Runs actions until one must wait. True if none is left.
  [[nodiscard]] Outcome<bool> run_actions();
  [[nodiscard]] Outcome<bool> run(const Action& action);
  [[nodiscard]] bool is_quiet_over(const Action& quiet) const;
  [[nodiscard]] Outcome<bool> keep_waiting(const Action& action);
  void count(const Action& action);
  void complete_part(int of, Ticket ticket, std::uint8_t part);
  void publish(int of);

  Options options_;
  Provider& provider_;
  std::vector<std::vector<std::int64_t>> sizes_;
  std::vector<std::unique_ptr<Ring>>& rings_;
  std::deque<Peer> peers_;  // elements never move, because counters are read concurrently
  std::deque<Action> actions_;
  std::vector<Token> completed_;  // in the current turn
  std::int64_t outstanding_ = 0;
  std::optional<Deadline> waits_since_;  // of the first action
  // An epoch ends once all descriptors that were in the rings when its end was seen have been
  // taken.
  bool is_epoch_ending_ = false;
  int epoch_cause_ = 0;
  std::vector<Ticket> epoch_marks_;
};

}  // namespace harpe::transport
