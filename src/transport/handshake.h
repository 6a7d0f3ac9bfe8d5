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

// Where the ranks of a run come together.
struct Meeting {
  std::string address;         // as of `Socket`: rank 0 listens there, all others connect
  std::string interface = "";  // through this one alone; "" for any
  std::string secret = "";     // the same for all ranks; "" trusts whoever reaches the address
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds limit{30'000};  // of coming together, and of each exchange
  // Rank 0: told at once of who is refused while the meeting goes on.
  std::function<void(const Diag&)> warn = [](const Diag&) {};
};

constexpr std::uint32_t kRendezvousVersion = 3;

// N010, of who says so.
[[nodiscard]] Diag not_met(const Meeting& meeting, const std::string& reason);

// How rank 0 and another rank learn that they are of one run: both prove that they know the secret
// over fresh nonces (HMAC-SHA256) before they say anything else, and what they say afterwards is
// sealed with a key of the connection.

struct Guest {
  int rank = 0;
  Sealed link;
};
// Refused, or gone. One that knows the secret is of this run: the meeting cannot come about. Others
// may be anybody, who must not be able to end it.
struct Refused {
  Diag why;
  bool is_of_this_run = false;
};
using Greeted = std::variant<Guest, Refused>;

// Rank 0's side, of one that has connected. `is_here`: whether a rank has come already. Refused:
// N010 it left; N011; N012; N014 it speaks another language, or knows the secret and is out of
// place.
[[nodiscard]] Greeted greet(Socket guest, const Meeting& meeting,
                            const std::function<bool(int rank)>& is_here, Deadline deadline);

// The other side. Errors: N010, N011, N012.
[[nodiscard]] Checked<Sealed> introduce(Socket host, const Meeting& meeting, Deadline deadline);

}  // namespace harpe::transport
