#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/diag.h"

#include "machine/fence.h"

namespace harpe::transport {

// What a provider guarantees between one rank and another. Only what the provider returned counts,
// not what was requested.
struct Guarantees {
  bool in_order = false;           // a write is placed after all earlier ones
  bool fence = false;              // a single write may request that order
  bool immediate = false;          // a put may carry data for its target's proxy
  int immediate_bytes = 0;         // size of that data
  bool remote_completion = false;  // a completion means that data is placed, not just sent
  bool counts = false;             // signals may add; else they only set
  bool target_progress = false;    // puts arrive only while the target's proxy turns
  friend bool operator==(const Guarantees&, const Guarantees&) = default;
};

// How signals are ordered after the data that they cover.
enum class Ordering : std::uint8_t {
  InOrder,         // the provider keeps the order of writes
  NicFence,        // signals request that order from the provider
  Immediate,       // signals travel with their puts and are applied when these are placed
  EpochQuiet,      // one wait for all puts of an epoch, then all its signals
  OperationQuiet,  // a wait for the puts before each signal, or group of signals
};

// How to order signals: by a schedule's fence; none: by the cheapest way that is safe with the
// provider.
using Policy = std::optional<Fence>;

// How long signals are held back.
enum class Hold : std::uint8_t { None, Group, Epoch };

struct Strategy {
  Ordering ordering = Ordering::OperationQuiet;
  Hold hold = Hold::None;
  bool quiet_all_ranks = false;  // a quiet waits for all ranks, not for one
  bool in_order = false;         // the provider keeps the order of writes, used or not
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// Without a fence, chooses the first available of: in-order writes, the NIC's fence, immediate
// data, one quiet per epoch; a quiet per operation if signals may not be held back (`may_hold`).
// Errors: N003 a guarantee that the fence needs and the provider lacks.
[[nodiscard]] Checked<Strategy> choose(Policy policy, const Guarantees& given, bool may_hold,
                                       const std::string& provider);

[[nodiscard]] std::string_view print(Ordering ordering);
[[nodiscard]] std::string_view print_policy(Policy policy);  // "auto", "put"
// "in-order writes, immediate data (8 bytes), remote completion".
[[nodiscard]] std::string describe(const Guarantees& given);

}  // namespace harpe::transport
