#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/exchange.h"
#include "transport/handshake.h"

namespace harpe::transport {

// News of a rank outside exchanges.
struct RankNews {
  int rank = 0;
  bool is_gone = false;  // its process has exited; else it has stopped and will report why
  friend bool operator==(const RankNews&, const RankNews&) = default;
};

// Ranks in processes of their own, on one host or several, that exchange through rank 0. When a
// process ends, rank 0 detects it by the closed connection at once, at any time, and tells the
// others.
class Rendezvous final : public Exchange {
 public:
  // A process that does not know the secret is refused; rank 0 is warned (Meeting::warn) and keeps
  // waiting, so strangers cannot end a run. A process that knows the secret but claims an invalid
  // place ends the rendezvous. Errors: N010; N014; for a refused process N010 to N012; N013; X018
  // too many open files.
  [[nodiscard]] static Checked<std::unique_ptr<Rendezvous>> meet(const Meeting& meeting);

  [[nodiscard]] int rank() const override { return meeting_.rank; }
  [[nodiscard]] int ranks() const override { return meeting_.ranks; }
  [[nodiscard]] Checked<std::vector<Blob>> all_gather(std::span<const std::byte> own) override;
  // The same among the remaining ranks. None for a rank that has exited, sends nothing within the
  // limit, or is silent for longer than `silence` (it hangs). If rank 0 has exited, none for all
  // other ranks. A rank that does not call this yet must call `listen`, which signals that it is
  // alive.
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left(std::span<const std::byte> own,
                                                             std::chrono::milliseconds limit,
                                                             std::chrono::milliseconds silence);
  // For each later exchange.
  void set_limit(std::chrono::milliseconds limit) { meeting_.limit = limit; }

  // Between exchanges: waits for news, which rank 0 forwards to all others, and signals that this
  // rank is alive. None within the limit, or if no other rank is left.
  [[nodiscard]] std::optional<RankNews> listen(std::chrono::milliseconds limit);
  // Tells the others not to wait for this rank.
  void tell_stopped();
  // The first rank that has exited or did not answer in time.
  [[nodiscard]] std::optional<int> lost() const { return lost_; }

 private:
  // The rank at the other end of a connection.
  struct Other {
    Sealed link;
    int rank = 0;
    bool is_gone = false;
    std::optional<Blob> given;  // received before it was requested; no news follow it
    std::chrono::steady_clock::time_point heard{};
  };
  struct Head;
  struct Message;
  // When an exchange ends early.
  enum class Until : std::uint8_t { FirstGone, All };
  struct Received {
    std::vector<std::optional<Blob>> blobs;  // of ranks 1, 2, …
    std::string failure;                     // why the first missing blob is missing
  };

  explicit Rendezvous(Meeting meeting) : meeting_(std::move(meeting)) {}
  [[nodiscard]] Checked<Ok> gather_guests();
  [[nodiscard]] Checked<Ok> admit(Socket guest, Deadline end);
  [[nodiscard]] bool is_here(int rank) const;
  [[nodiscard]] std::string name_missing() const;
  [[nodiscard]] Checked<Ok> join_host();
  [[nodiscard]] Checked<std::vector<Blob>> gather_as_host(std::span<const std::byte> own);
  [[nodiscard]] Checked<std::vector<Blob>> gather_as_guest(std::span<const std::byte> own);
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left_as_host(
      std::span<const std::byte> own, Deadline end, std::chrono::milliseconds silence);
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left_as_guest(
      std::span<const std::byte> own, Deadline end, std::chrono::milliseconds silence);

  [[nodiscard]] static Result<Ok, SocketError> send(Other& other, const Head& head,
                                                    std::span<const std::byte> blob,
                                                    Deadline deadline);
  [[nodiscard]] static Result<Ok, SocketError> send_blob(Other& other,
                                                         std::span<const std::byte> blob,
                                                         Deadline deadline);
  [[nodiscard]] static Result<Message, SocketError> receive(Other& other, Deadline deadline);
  // `silence`: none for an exchange in which ranks may be silent.
  [[nodiscard]] Result<Blob, SocketError> receive_blob(
      Other& other, Until until, Deadline deadline,
      std::optional<std::chrono::milliseconds> silence = std::nullopt);
  // The next blob; none if the message is news.
  [[nodiscard]] Result<std::optional<Blob>, SocketError> receive_next(Other& other, Until until,
                                                                      Deadline deadline);
  [[nodiscard]] Received receive_from_all(
      Until until, Deadline end, std::optional<std::chrono::milliseconds> silence = std::nullopt);
  [[nodiscard]] static std::vector<Other*> wait_for(const std::vector<Other*>& from,
                                                    Deadline deadline);
  // News from a connection with input; none for a blob or a sign of life.
  [[nodiscard]] static std::optional<RankNews> read_news(Other& other);
  void keep(const RankNews& news);
  void tell(const RankNews& news);
  void beat();
  [[nodiscard]] std::string lose(Other& other, const SocketError& error);

  [[nodiscard]] Diag wrong(const std::string& reason) const;
  [[nodiscard]] Deadline deadline() const;

  Meeting meeting_;
  std::vector<Other> others_;  // rank 0: ranks 1, 2, …; else rank 0 alone
  std::vector<Diag> refused_;  // the first few
  std::optional<int> lost_;
  std::optional<Deadline> news_since_;
  std::chrono::steady_clock::time_point last_beat_{};
};

}  // namespace harpe::transport
