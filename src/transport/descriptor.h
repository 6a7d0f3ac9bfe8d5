#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "support/result.h"
#include "transport/descriptor_layout.h"

namespace harpe::transport {

// A command to a rank's proxy, as 64 bytes: the wire format between the writers (host threads, or
// kernels of GPUs) and the proxy thread that drives the network.

enum class Operation : std::uint8_t {
  Put = 1,    // source -> destination
  PutSignal,  // the same, then the signal `word` on the other rank
  Signal,     // only the signal `word`
  Fence,      // orders what follows after what precedes, without a wait
  Quiet,      // ends the holding back of signals
};

// A signal is a 32-bit word on the other rank: set to an epoch, never lowered, or added to.
enum class SignalMode : std::uint8_t { Set, Add };

// Which puts have arrived once the signal is seen.
enum class Strength : std::uint8_t {
  Strong,  // its own put and all earlier ones to the same rank
  Weak,    // its own put
};

// What may follow, so that signals may wait for each other and share one ordering point. A writer
// that announces more must send it, because a signal may be held back until the batch ends.
enum class Follows : std::uint8_t {
  Nothing,  // the batch ends here
  Group,    // more to the same rank
  Epoch,    // this is the last to this rank; more to others
};

// A byte of registered memory: of this rank for a source, otherwise of the other rank.
struct Place {
  std::int32_t region = 0;
  std::int64_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct Command {
  Operation operation = Operation::Quiet;
  Place source{};
  Place destination{};
  std::int64_t bytes = 0;  // Put, PutSignal
  Place word{};            // PutSignal, Signal: a multiple of 4
  std::uint32_t value = 0;
  SignalMode mode = SignalMode::Set;
  Strength strength = Strength::Strong;
  Follows follows = Follows::Nothing;
  friend bool operator==(const Command&, const Command&) = default;
};

// Sizes of the regions that two ranks registered. Commands cannot address anything else.
struct Reach {
  std::span<const std::int64_t> own;
  std::span<const std::int64_t> peer;
};

using Words = std::array<std::uint64_t, kDescriptorWords>;

// Word 0 holds all small fields and the phase bit, which is 0 here: a ring sets it (ring.h), and
// its store, the last one, publishes the descriptor.
[[nodiscard]] Words encode(const Command& command);

struct Malformed {
  std::string reason;  // "a source of 96 bytes at 4064 of region 0, which has 4096"
};
// Total: any 64 bytes are either a command within `reach` or refused. Ignores the phase bit.
[[nodiscard]] Result<Command, Malformed> decode(const Words& words, Reach reach);

// A signal as immediate data that some networks deliver with a put; the other rank's proxy applies
// it. With 4 bytes: only additions of 1.
struct SignalUpdate {
  Place word{};
  std::uint32_t value = 0;
  SignalMode mode = SignalMode::Set;
  friend bool operator==(const SignalUpdate&, const SignalUpdate&) = default;
};
// None if it does not fit.
[[nodiscard]] std::optional<std::uint64_t> encode_immediate(const SignalUpdate& update, int bytes);
// `own`: the sizes of the receiving rank's regions.
[[nodiscard]] Result<SignalUpdate, Malformed> decode_immediate(std::uint64_t data, int bytes,
                                                               std::span<const std::int64_t> own);

}  // namespace harpe::transport
