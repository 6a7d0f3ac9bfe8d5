#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/exchange.h"
#include "transport/handshake.h"

namespace harpe::transport {

// What ranks hear of each other beside their exchanges.
struct RankNews {
  int rank = 0;
  bool is_gone = false;  // its process has ended; else it has stopped, and says why when asked
  friend bool operator==(const RankNews&, const RankNews&) = default;
};

// Ranks in processes of their own, on one machine or several, that exchange through rank 0. When a
// process ends, rank 0 learns it from its connection at once, whatever others are at, and tells
// them.
class Rendezvous final : public Exchange {
 public:
  // Who comes and does not know the secret is refused, and rank 0 is warned (Meeting::warn) and
  // waits on: strangers cannot end a run. One that knows it and is out of place ends the meeting.
  // Errors: N010; N014; for who is refused N010 to N012; N013; X018 too many files are open.
  [[nodiscard]] static Checked<std::unique_ptr<Rendezvous>> meet(const Meeting& meeting);

  [[nodiscard]] int rank() const override { return meeting_.rank; }
  [[nodiscard]] int ranks() const override { return meeting_.ranks; }
  [[nodiscard]] Checked<std::vector<Blob>> all_gather(std::span<const std::byte> own) override;
  // The same among those that are left: none of who is gone, or does not give anything within the
  // limit, or is silent for longer than `silence`, as a process that hangs; where rank 0 is gone,
  // of nobody else. Who does not call yet listens meanwhile, and is heard by that.
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left(std::span<const std::byte> own,
                                                             std::chrono::milliseconds limit,
                                                             std::chrono::milliseconds silence);
  // Of each exchange from here on.
  void set_limit(std::chrono::milliseconds limit) { meeting_.limit = limit; }

  // Between exchanges: waits for news, which rank 0 passes on to all others, and lets the others
  // hear that this rank is alive. None within the limit, or where nobody is left who may have some.
  [[nodiscard]] std::optional<RankNews> listen(std::chrono::milliseconds limit);
  // Others need not wait for this rank.
  void tell_stopped();
  // The first that is gone, or did not answer in time.
  [[nodiscard]] std::optional<int> lost() const { return lost_; }

 private:
  // Who is at the other end of a connection.
  struct Other {
    Sealed link;
    int rank = 0;
    bool is_gone = false;
    std::optional<Blob> given;  // before it was asked for: no news come behind it
    std::chrono::steady_clock::time_point heard{};
  };
  struct Head;
  struct Message;
  // How long an exchange goes on.
  enum class Until : std::uint8_t { FirstGone, All };
  struct Received {
    std::vector<std::optional<Blob>> blobs;  // of ranks 1, 2, …
    std::string failure;                     // why the first of those is none
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
  // `silence`: none for an exchange in which others may be silent.
  [[nodiscard]] Result<Blob, SocketError> receive_blob(
      Other& other, Until until, Deadline deadline,
      std::optional<std::chrono::milliseconds> silence = std::nullopt);
  // A blob that has come; none where something else has.
  [[nodiscard]] Result<std::optional<Blob>, SocketError> receive_next(Other& other, Until until,
                                                                      Deadline deadline);
  [[nodiscard]] Received receive_from_all(
      Until until, Deadline end, std::optional<std::chrono::milliseconds> silence = std::nullopt);
  [[nodiscard]] static std::vector<Other*> wait_for(const std::vector<Other*>& from,
                                                    Deadline deadline);
  // Of a connection where something has come; none where that is a blob.
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
