#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "transport/exchange.h"
#include "transport/sealed.h"

namespace harpe::transport {

struct Meeting {
  std::string address;         // as of `Socket`: rank 0 listens there, all others connect
  std::string interface = "";  // through this one alone; "" for any
  std::string secret = "";     // the same for all ranks; "" trusts whoever reaches the address
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds limit{30'000};  // of coming together, and of each exchange
};

constexpr std::uint32_t kRendezvousVersion = 1;

// Ranks that come together through rank 0. Both sides prove that they know the secret before they
// say anything else, and what they exchange is sealed with a key of the connection.
class Rendezvous final : public Exchange {
 public:
  // Who comes and is not of this run is refused, and the meeting goes on without: rank 0's notes
  // name them where it fails. Errors: N010; for who is refused N011, N012, N014; N013.
  [[nodiscard]] static Checked<std::unique_ptr<Rendezvous>> meet(const Meeting& meeting);

  [[nodiscard]] Checked<std::vector<Blob>> all_gather(std::span<const std::byte> own) override;

  // Rank 0: who came and was refused.
  [[nodiscard]] const std::vector<Diag>& refused() const { return refused_; }

 private:
  explicit Rendezvous(Meeting meeting) : meeting_(std::move(meeting)) {}
  [[nodiscard]] Checked<Ok> gather_guests();
  // A guest of this run, and its rank; none where it was refused.
  [[nodiscard]] std::optional<int> greet(Socket guest, Deadline deadline);
  [[nodiscard]] std::optional<Diag> judge_place(int rank, int ranks, const std::string& who) const;
  [[nodiscard]] Checked<Ok> join_host();
  [[nodiscard]] Checked<std::vector<Blob>> gather_as_host(std::span<const std::byte> own);
  [[nodiscard]] Checked<std::vector<Blob>> gather_as_guest(std::span<const std::byte> own);
  [[nodiscard]] Diag wrong(const std::string& reason) const;
  [[nodiscard]] Diag refuse(DiagCode code, const std::string& who) const;
  [[nodiscard]] Deadline deadline() const;

  Meeting meeting_;
  std::vector<std::optional<Sealed>> others_;  // rank 0: of ranks 1, 2, …; else rank 0's alone
  std::vector<Diag> refused_;
};

}  // namespace harpe::transport
