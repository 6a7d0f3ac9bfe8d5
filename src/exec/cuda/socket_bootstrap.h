#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/bootstrap.h"
#include "transport/socket.h"

namespace harpe::cuda {

struct Meeting {
  std::string address;  // as of `Socket`: rank 0 listens there, all others connect
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds limit{30'000};  // of coming together, and of each exchange
};

// What ranks hear of each other beside their exchanges.
struct RankNews {
  int rank = 0;
  bool is_gone = false;  // its process has ended; else it has stopped, and says why when asked
  friend bool operator==(const RankNews&, const RankNews&) = default;
};

// Ranks that exchange through rank 0, on one machine or a few. When a process ends, rank 0 learns
// it from its connection at once, whatever others are at, and tells them.
class SocketBootstrap final : public Bootstrap {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SocketBootstrap>, BootstrapError> meet(
      const Meeting& meeting);

  [[nodiscard]] int rank() const override { return meeting_.rank; }
  [[nodiscard]] int ranks() const override { return meeting_.ranks; }
  [[nodiscard]] Result<std::vector<Blob>, BootstrapError> all_gather(
      std::span<const std::byte> own) override;
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left(
      std::span<const std::byte> own, std::chrono::milliseconds limit) override;
  // Of each exchange from here on.
  void set_limit(std::chrono::milliseconds limit) { meeting_.limit = limit; }

  // Between exchanges: waits for news, which rank 0 passes on to all others. None within the limit,
  // or where nobody is left who may have some.
  [[nodiscard]] std::optional<RankNews> listen(std::chrono::milliseconds limit);
  // Others need not wait for this rank.
  void tell_stopped();
  // The first that is gone, or did not answer in time.
  [[nodiscard]] std::optional<int> lost() const { return lost_; }

 private:
  // Who is at the other end of a connection.
  struct Other {
    Socket socket;
    int rank = 0;
    bool is_gone = false;
    bool has_given = false;  // a blob, between exchanges: no news come behind it
  };
  struct Head;
  // How long an exchange goes on.
  enum class Until : std::uint8_t { FirstGone, All };
  struct Received {
    std::vector<std::optional<Blob>> blobs;  // of ranks 1, 2, …
    std::string failure;                     // why the first of those is none
  };

  explicit SocketBootstrap(Meeting meeting) : meeting_(std::move(meeting)) {}
  [[nodiscard]] Result<Ok, BootstrapError> gather_guests();
  [[nodiscard]] Result<Ok, BootstrapError> admit(Socket guest, Deadline end);
  [[nodiscard]] std::string name_missing() const;
  [[nodiscard]] Result<Ok, BootstrapError> join_host();
  [[nodiscard]] Result<std::vector<Blob>, BootstrapError> gather_as_host(
      std::span<const std::byte> own);
  [[nodiscard]] Result<std::vector<Blob>, BootstrapError> gather_as_guest(
      std::span<const std::byte> own);
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left_as_host(std::span<const std::byte> own,
                                                                     Deadline end);
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left_as_guest(
      std::span<const std::byte> own, Deadline end);

  [[nodiscard]] static Result<Ok, SocketError> send_blob(const Other& other,
                                                         std::span<const std::byte> blob,
                                                         Deadline deadline);
  [[nodiscard]] Result<Blob, SocketError> receive_blob(Other& other, Until until,
                                                       Deadline deadline);
  [[nodiscard]] Received receive_from_all(Until until, Deadline end);
  [[nodiscard]] static std::vector<Other*> wait_for(const std::vector<Other*>& from,
                                                    Deadline deadline);
  // Of a connection where something has come; none where that is a blob.
  [[nodiscard]] static std::optional<RankNews> read_news(Other& other);
  void keep(const RankNews& news);
  void tell(const RankNews& news) const;
  [[nodiscard]] std::string lose(Other& other, const SocketError& error);

  [[nodiscard]] BootstrapError wrong(const std::string& reason) const;
  [[nodiscard]] Deadline deadline() const;

  Meeting meeting_;
  std::vector<Other> others_;  // rank 0: ranks 1, 2, …; else rank 0 alone
  std::optional<int> lost_;
  std::optional<Deadline> news_since_;
};

}  // namespace harpe::cuda
