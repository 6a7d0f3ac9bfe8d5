#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "support/diag.h"
#include "transport/sealed.h"

namespace harpe::transport {

// How the ranks of a run meet.
struct Meeting {
  std::string address;         // as in `Socket`: rank 0 listens, all others connect
  std::string interface = "";  // only through this one; "": any
  std::string secret = "";     // common to all ranks; "" accepts any process that connects
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds limit{30'000};  // of the rendezvous, and of each exchange
  // Rank 0: called at once for each refused process while the rendezvous goes on.
  std::function<void(const Diag&)> warn = [](const Diag&) {};
};

constexpr std::uint32_t kRendezvousVersion = 3;

// N010, reported by this rank.
[[nodiscard]] Diag not_met(const Meeting& meeting, const std::string& reason);

// How rank 0 and another rank verify that they are of one run. Both prove that they know the secret
// over fresh nonces (HMAC-SHA256) before they send anything else. Later messages are sealed with a
// key of the connection.

struct Guest {
  int rank = 0;
  Sealed link;
};
// A process that was refused or has left. If it knows the secret it is of this run, and the
// rendezvous fails. Any other process may be a stranger, which must not be able to end the run.
struct Refused {
  Diag why;
  bool is_of_this_run = false;
};
using Greeted = std::variant<Guest, Refused>;

// Rank 0's side, for a process that has connected. `is_here`: whether a rank has already joined.
// Refused: N010 it left; N011; N012; N014 it speaks another protocol, or knows the secret and
// claims an invalid place.
[[nodiscard]] Greeted greet(Socket guest, const Meeting& meeting,
                            const std::function<bool(int rank)>& is_here, Deadline deadline);

// The other ranks' side. Errors: N010, N011, N012.
[[nodiscard]] Checked<Sealed> introduce(Socket host, const Meeting& meeting, Deadline deadline);

}  // namespace harpe::transport
