#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/result.h"
#include "transport/deadline.h"

namespace harpe {

// The error of a socket call.
struct SocketError {
  std::string reason;    // "connect: Connection refused"
  bool is_gone = false;  // the other end has closed
  int number = 0;        // the system's error number; 0 if the time is over
};

// One end of a connection between processes, or a listening socket. An address is `HOST:PORT`,
// `unix:PATH`, or `unix:@NAME` for a name without a file. For one machine, or a network of trusted
// machines.
class Socket {
 public:
  // `interface`: only reachable through it; "": any.
  [[nodiscard]] static Result<Socket, SocketError> listen(const std::string& address,
                                                          const std::string& interface = "");
  // Retries until a process listens there.
  [[nodiscard]] static Result<Socket, SocketError> connect(const std::string& address,
                                                           Deadline deadline,
                                                           const std::string& interface = "");
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // Skips a connection that closed before it was accepted.
  [[nodiscard]] Result<Socket, SocketError> accept(Deadline deadline) const;
  // The address of the other end: "10.0.0.3:40112", or "this machine".
  [[nodiscard]] std::string remote() const;
  // Sends or receives all of the bytes.
  [[nodiscard]] Result<Ok, SocketError> send(std::span<const std::byte> bytes,
                                             Deadline deadline) const;
  [[nodiscard]] Result<Ok, SocketError> receive(std::span<std::byte> bytes,
                                                Deadline deadline) const;

  // Whether the other end has closed, whatever is left to receive.
  [[nodiscard]] bool ended() const;

  // Indices in `sockets` of those that have input or whose other end has closed. Waits until there
  // are some; empty at the deadline.
  [[nodiscard]] static std::vector<std::size_t> wait_for_any(std::span<const Socket* const> sockets,
                                                             Deadline deadline);

 private:
  [[nodiscard]] static Result<Socket, SocketError> open(int family, const std::string& interface);
  explicit Socket(int file) : file_(file) {}

  int file_ = -1;
};

}  // namespace harpe
