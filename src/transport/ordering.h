#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/diag.h"

#include "machine/fence.h"

namespace harpe::transport {

// What a provider gives, between one rank and one other. Everything here was returned by it: what
// was asked for and not returned is not relied on.
struct Guarantees {
  bool in_order = false;           // a write is placed after all earlier ones
  bool fence = false;              // a write may ask for the same for itself
  bool immediate = false;          // a put may carry data that its target's proxy gets with it
  int immediate_bytes = 0;         // of that data
  bool remote_completion = false;  // completions say that data is placed, not that it has left
  bool counts = false;             // signals may add; else they set
  bool target_progress = false;    // puts arrive only while the target's proxy turns
  friend bool operator==(const Guarantees&, const Guarantees&) = default;
};

// How signals come after the data they stand for.
enum class Ordering : std::uint8_t {
  InOrder,         // the provider keeps the order of writes: nothing is done
  NicFence,        // signals ask the provider for it
  Immediate,       // signals travel with their puts and are applied when those are placed
  EpochQuiet,      // all puts of an epoch are waited for once, then all signals go
  OperationQuiet,  // the puts before each signal, or group of signals, are waited for
};

// How signals are to be ordered: by the fence that a schedule states; none: by the cheapest that
// the provider makes safe.
using Policy = std::optional<Fence>;

// How long signals are held back.
enum class Hold : std::uint8_t { None, Group, Epoch };

struct Strategy {
  Ordering ordering = Ordering::OperationQuiet;
  Hold hold = Hold::None;
  bool quiet_all_ranks = false;  // a quiet waits for all ranks, not for one
  bool in_order = false;         // the provider keeps the order of writes, whatever `ordering` uses
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// No fence takes, in this order: in-order writes, the NIC's fence, immediate data, one quiet per
// epoch; a quiet per operation where signals may not be held back (`may_hold`).
// Errors: N003 what the fence relies on and the provider does not give.
[[nodiscard]] Checked<Strategy> choose(Policy policy, const Guarantees& given, bool may_hold,
                                       const std::string& provider);

[[nodiscard]] std::string_view print(Ordering ordering);
[[nodiscard]] std::string_view print_policy(Policy policy);  // "auto", "put"
// "in-order writes, immediate data (8 bytes), remote completion".
[[nodiscard]] std::string describe(const Guarantees& given);

}  // namespace harpe::transport
