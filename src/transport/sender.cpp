#include "transport/sender.h"

#include <algorithm>

#include "support/check.h"

namespace harpe::transport {
namespace {

constexpr int kBatch = 32;  // descriptors of one ring before the next ring is served

// Parts of a descriptor that complete separately.
constexpr std::uint8_t kPutPart = 1;
constexpr std::uint8_t kSignalPart = 2;

// A token, from its lowest bit: peer 16, part 2, ticket.
constexpr int kPeerBits = 16;
constexpr int kTicketAt = kPeerBits + 2;

Token token_of(int peer, Ticket ticket, std::uint8_t part) {
  return ticket << kTicketAt | Token{part} << kPeerBits | static_cast<Token>(peer);
}
int peer_of(Token token) { return static_cast<int>(token & ((Token{1} << kPeerBits) - 1)); }
std::uint8_t part_of(Token token) { return static_cast<std::uint8_t>(token >> kPeerBits & 3); }
Ticket ticket_of(Token token) { return token >> kTicketAt; }

bool has_signal(const Command& command) {
  return command.operation == Operation::PutSignal || command.operation == Operation::Signal;
}
bool has_put(const Command& command) {
  return command.operation == Operation::PutSignal || command.operation == Operation::Put;
}

SignalUpdate update_of(const Command& command) {
  return {.word = command.word, .value = command.value, .mode = command.mode};
}

std::string operations(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " operation" : " operations");
}

}  // namespace

Sender::Sender(Options options, Provider& provider, std::vector<std::vector<std::int64_t>> sizes,
               std::vector<std::unique_ptr<Ring>>& rings)
    : options_(options), provider_(provider), sizes_(std::move(sizes)), rings_(rings) {
  HP_CHECK(sizes_.size() == rings_.size() && rings_.size() < (std::size_t{1} << kPeerBits),
           "a ring for each rank");
  for (std::size_t at = 0; at < rings_.size(); ++at) peers_.emplace_back();
  epoch_marks_.resize(rings_.size());
}

Outcome<bool> Sender::step() {
  HP_TRY(bool any, turn_provider());
  HP_TRY(bool is_free, run_actions());
  for (int from = 0; is_free && from < static_cast<int>(peers_.size()); ++from) {
    for (int count = 0; is_free && count < kBatch; ++count) {
      HP_TRY(const bool is_taken, take(from));
      if (!is_taken) break;
      any = true;
      HP_TRY(is_free, run_actions());
    }
  }
  if (is_free && is_epoch_ending_ && is_epoch_taken()) {
    is_epoch_ending_ = false;
    end_epoch(epoch_cause_);
    HP_TRY(is_free, run_actions());
    any = true;
  }
  return any;
}

Outcome<bool> Sender::turn_provider() {
  completed_.clear();
  HP_TRY(const bool any, provider_.turn(completed_));
  for (const Token token : completed_) {
    Peer& whose = peer(peer_of(token));
    --whose.outstanding;
    --outstanding_;
    complete_part(peer_of(token), ticket_of(token), part_of(token));
  }
  return any;
}

Outcome<bool> Sender::take(int from) {
  Ring& source = ring(from);
  const Ticket ticket = source.taken();
  const std::optional<Words> words = source.pop();
  if (!words) return false;
  const Reach reach{.own = sizes_[static_cast<std::size_t>(options_.rank)],
                    .peer = sizes_[static_cast<std::size_t>(from)]};
  const auto command = decode(*words, reach);
  if (!command.ok()) {
    return TransportError{.kind = Failure::Malformed,
                          .rank = options_.rank,
                          .peer = from,
                          .what = "a descriptor for memory",
                          .reason = command.error().reason};
  }
  expand(from, ticket, *command);
  return true;
}

void Sender::expand(int to, Ticket ticket, const Command& command) {
  Peer& target = peer(to);
  const bool is_one = travels_with_put(command);
  const int put_part = has_put(command) ? kPutPart : 0;
  const int signal_part = has_signal(command) && !is_one ? kSignalPart : 0;
  target.parts.push_back(static_cast<std::uint8_t>(put_part | signal_part));
  if (command.operation == Operation::Fence || command.operation == Operation::Quiet) {
    expand_order(to, command.operation);
    publish(to);
    return;
  }
  const bool is_fenced = target.fenced && !options_.strategy.in_order;
  const bool by_nic = options_.strategy.ordering == Ordering::NicFence;
  // A signal may be held back while later puts are not, so these puts still need the NIC's fence.
  if (!by_nic || has_put(command)) target.fenced = false;
  if (is_fenced && !by_nic) add_quiet(to, false);
  if (has_put(command)) expand_put(to, ticket, command, is_fenced && by_nic);
  if (has_signal(command) && !is_one) hold_back(to, {update_of(command), ticket});
  if (has_signal(command)) end_batch(to, command.follows);
  if (!has_put(command)) publish(to);
}

void Sender::expand_order(int to, Operation operation) {
  Peer& target = peer(to);
  const bool by_epoch = options_.strategy.hold == Hold::Epoch && !target.held.empty();
  target.has_open_group = false;
  if (operation == Operation::Quiet && by_epoch) {
    begin_epoch_end(to);
    return;
  }
  // A fence cannot wait for the epoch's end, because what follows it would overtake the signals.
  if (by_epoch) add_quiet(to, false);
  release(to);
  if (operation == Operation::Fence) target.fenced = true;
}

bool Sender::travels_with_put(const Command& command) const {
  const Strategy& strategy = options_.strategy;
  // A strong signal needs a wait for earlier puts, and is then held with others.
  const bool is_alone = command.strength == Strength::Weak || strategy.in_order;
  return command.operation == Operation::PutSignal && strategy.ordering == Ordering::Immediate &&
         (is_alone || strategy.hold == Hold::None) && provider_.carries(update_of(command));
}

void Sender::expand_put(int to, Ticket ticket, const Command& command, bool fence) {
  Action action{.kind = Action::Kind::Put, .peer = to};
  action.put = {.peer = to,
                .source = command.source,
                .destination = command.destination,
                .bytes = command.bytes,
                .fence = fence,
                .token = token_of(to, ticket, kPutPart)};
  if (travels_with_put(command)) {
    action.put.immediate = update_of(command);
    // Immediate data only proves that its own put is placed, not earlier ones.
    if (command.strength == Strength::Strong && !options_.strategy.in_order) add_quiet(to, false);
  }
  actions_.push_back(action);
}

// Signals are sent once the puts that they cover are ordered.
void Sender::end_batch(int to, Follows follows) {
  const Strategy& strategy = options_.strategy;
  peer(to).has_open_group = strategy.hold != Hold::None && follows == Follows::Group;
  if (peer(to).has_open_group) return;
  if (strategy.hold != Hold::Epoch) {
    release(to);
  } else if (follows == Follows::Nothing) {
    begin_epoch_end(to);
  }
}

void Sender::begin_epoch_end(int cause) {
  is_epoch_ending_ = true;
  epoch_cause_ = cause;
  for (std::size_t at = 0; at < rings_.size(); ++at) epoch_marks_[at] = rings_[at]->reserved();
}

void Sender::hold_back(int to, const Held& signal) {
  // Held signals that set the same word are merged: the highest value counts.
  for (Held& other : peer(to).held) {
    if (other.update.word != signal.update.word || other.update.mode != SignalMode::Set ||
        signal.update.mode != SignalMode::Set) {
      continue;
    }
    other.update.value = std::max(other.update.value, signal.update.value);
    complete_part(to, std::exchange(other.ticket, signal.ticket), kSignalPart);
    return;
  }
  peer(to).held.push_back(signal);
}

// Posts the held signals of one rank, behind what orders them.
void Sender::release(int to) {
  Peer& target = peer(to);
  target.has_open_group = false;
  if (target.held.empty()) return;
  const Strategy& strategy = options_.strategy;
  const bool quiets = strategy.ordering == Ordering::OperationQuiet ||
                      (strategy.ordering == Ordering::Immediate && !strategy.in_order &&
                       strategy.hold == Hold::None);
  if (quiets) add_quiet(to, strategy.quiet_all_ranks);
  // Writes posted after a fenced write wait as well (fi_endpoint(3), FI_FENCE).
  bool fence = strategy.ordering == Ordering::NicFence;
  for (const Held& signal : target.held) add_signal(to, signal, std::exchange(fence, false));
  target.held.clear();
}

bool Sender::is_epoch_taken() {
  for (std::size_t at = 0; at < rings_.size(); ++at) {
    if (rings_[at]->taken() < epoch_marks_[at]) return false;
  }
  return true;
}

// One quiet for the signals of all ranks whose groups are complete.
void Sender::end_epoch(int cause) {
  add_quiet(cause, true);
  for (int to = 0; to < static_cast<int>(peers_.size()); ++to) {
    if (!peer(to).has_open_group) release(to);
  }
}

void Sender::add_quiet(int to, bool all) {
  Action quiet{.kind = Action::Kind::Quiet, .peer = to};
  quiet.quiet_all_ranks = all;
  actions_.push_back(quiet);
}

void Sender::add_signal(int to, const Held& signal, bool fence) {
  Action action{.kind = Action::Kind::Signal, .peer = to};
  action.signal = {.peer = to,
                   .update = signal.update,
                   .fence = fence,
                   .token = token_of(to, signal.ticket, kSignalPart)};
  actions_.push_back(action);
}

Outcome<bool> Sender::run_actions() {
  while (!actions_.empty()) {
    HP_TRY(const bool is_done, run(actions_.front()));
    if (!is_done) {
      HP_REQUIRE_OK(keep_waiting(actions_.front()));
      return false;
    }
    count(actions_.front());
    actions_.pop_front();
  }
  return true;
}

Outcome<bool> Sender::run(const Action& action) {
  if (action.kind == Action::Kind::Quiet) return is_quiet_over(action);
  HP_TRY(const Posted posted, action.kind == Action::Kind::Put ? provider_.post(action.put)
                                                               : provider_.post(action.signal));
  return posted == Posted::Yes;
}

bool Sender::is_quiet_over(const Action& quiet) const {
  if (quiet.quiet_all_ranks) return outstanding_ == 0;
  return peers_[static_cast<std::size_t>(quiet.peer)].outstanding == 0;
}

Outcome<bool> Sender::keep_waiting(const Action& action) {
  const auto now = std::chrono::steady_clock::now();
  if (!waits_since_) {
    waits_since_ = now;
    if (action.kind != Action::Kind::Quiet) peer(action.peer).counters.full.add(1);
  }
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(now - *waits_since_);
  if (elapsed < options_.limit) return true;
  // In a quiet of all ranks, names the rank with most outstanding operations.
  int who = action.peer;
  for (int at = 0; action.quiet_all_ranks && at < static_cast<int>(peers_.size()); ++at) {
    if (peer(at).outstanding > peer(who).outstanding) who = at;
  }
  const bool is_quiet = action.kind == Action::Kind::Quiet;
  return TransportError{
      .kind = Failure::Expired,
      .rank = options_.rank,
      .peer = who,
      .what = is_quiet ? "remote completion of " + operations(peer(who).outstanding)
                       : "room for another operation on top of " + operations(outstanding_),
      .elapsed = elapsed};
}

void Sender::count(const Action& action) {
  LiveCounters& counters = peer(action.peer).counters;
  const auto since = std::exchange(waits_since_, std::nullopt);
  if (action.kind == Action::Kind::Quiet) {
    counters.quiets.add(1);
    if (since) {
      const auto stalled = std::chrono::steady_clock::now() - *since;
      counters.stalled_ns.add(
          std::chrono::duration_cast<std::chrono::nanoseconds>(stalled).count());
    }
    return;
  }
  ++peer(action.peer).outstanding;
  ++outstanding_;
  if (action.kind == Action::Kind::Put) {
    counters.puts.add(1);
    counters.bytes.add(action.put.bytes);
    counters.signals.add(action.put.immediate ? 1 : 0);
    counters.nic_fences.add(action.put.fence ? 1 : 0);
  } else {
    counters.signals.add(1);
    counters.nic_fences.add(action.signal.fence ? 1 : 0);
  }
}

void Sender::complete_part(int of, Ticket ticket, std::uint8_t part) {
  Peer& whose = peer(of);
  HP_CHECK(ticket >= whose.first && ticket - whose.first < whose.parts.size(),
           "an operation completes once");
  std::uint8_t& left = whose.parts[static_cast<std::size_t>(ticket - whose.first)];
  HP_CHECK((left & part) != 0, "an operation completes once");
  left = static_cast<std::uint8_t>(left & ~part);
  publish(of);
}

void Sender::publish(int of) {
  Peer& whose = peer(of);
  while (!whose.parts.empty() && whose.parts.front() == 0) {
    whose.parts.pop_front();
    ++whose.first;
  }
  whose.sent = std::max(whose.sent, whose.first);
  const Ticket end = whose.first + whose.parts.size();
  while (whose.sent < end &&
         (whose.parts[static_cast<std::size_t>(whose.sent - whose.first)] & kPutPart) == 0) {
    ++whose.sent;
  }
  Ring& to = ring(of);
  if (to.sent() != whose.sent) to.set_sent(whose.sent);
  if (to.completed() != whose.first) to.set_completed(whose.first);
}

}  // namespace harpe::transport
