#pragma once

#include "transport/proof.h"
#include "transport/provider.h"
#include "transport/socket.h"

namespace harpe::transport {

// A connection between two sides with a common key: each message proves that it is the other side's
// next one. Messages are authenticated, not encrypted.
class Sealed {
 public:
  Sealed(Socket socket, const Proof& key, bool is_host)
      : socket_(std::move(socket)), key_(key), is_host_(is_host) {}

  [[nodiscard]] Result<Ok, SocketError> send(std::span<const std::byte> bytes, Deadline deadline);
  [[nodiscard]] Result<Blob, SocketError> receive(Deadline deadline);
  [[nodiscard]] const Socket& socket() const { return socket_; }

 private:
  Socket socket_;
  Proof key_;
  bool is_host_ = false;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace harpe::transport
