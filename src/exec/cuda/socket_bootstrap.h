#pragma once

#include <chrono>
#include <memory>

#include "exec/cuda/bootstrap.h"
#include "transport/socket.h"

namespace harpe::cuda {

struct Meeting {
  std::string address;  // as of `Socket`: rank 0 listens there, all others connect
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds limit{30'000};  // of coming together, and of each exchange
};

// Ranks that exchange through rank 0, on one machine or a few.
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

 private:
  explicit SocketBootstrap(Meeting meeting) : meeting_(std::move(meeting)) {}
  [[nodiscard]] Result<Ok, BootstrapError> gather_guests();
  [[nodiscard]] Result<Ok, BootstrapError> join_host();
  [[nodiscard]] Result<std::vector<Blob>, BootstrapError> gather_as_host(
      std::span<const std::byte> own) const;
  [[nodiscard]] Result<std::vector<Blob>, BootstrapError> gather_as_guest(
      std::span<const std::byte> own) const;
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left_as_host(std::span<const std::byte> own,
                                                                     Deadline end) const;
  [[nodiscard]] std::vector<std::optional<Blob>> gather_left_as_guest(
      std::span<const std::byte> own, Deadline end) const;
  [[nodiscard]] BootstrapError wrong(const std::string& reason) const;
  [[nodiscard]] Deadline deadline() const;

  Meeting meeting_;
  std::vector<Socket> others_;  // rank 0: of ranks 1, 2, …; else rank 0's alone
};

}  // namespace harpe::cuda
