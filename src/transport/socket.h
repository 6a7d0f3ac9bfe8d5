#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/result.h"
#include "transport/deadline.h"

namespace harpe {

// What a socket could not do.
struct SocketError {
  std::string reason;    // "connect: Connection refused"
  bool is_gone = false;  // the other end is no more
  int number = 0;        // of the system's error; none where the time is over
};

// One end of a connection between processes, or a place where others connect. An address is
// `HOST:PORT`, or `unix:PATH`, or `unix:@NAME` for a name that needs no file; of one machine, or of
// a network whose machines are trusted.
class Socket {
 public:
  // `interface`: reached through it alone; "" for any.
  [[nodiscard]] static Result<Socket, SocketError> listen(const std::string& address,
                                                          const std::string& interface = "");
  // Tries until somebody listens there.
  [[nodiscard]] static Result<Socket, SocketError> connect(const std::string& address,
                                                           Deadline deadline,
                                                           const std::string& interface = "");
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // One that left before it was accepted is passed over.
  [[nodiscard]] Result<Socket, SocketError> accept(Deadline deadline) const;
  // Who is at the other end: "10.0.0.3:40112", or "this machine".
  [[nodiscard]] std::string remote() const;
  // All of the bytes.
  [[nodiscard]] Result<Ok, SocketError> send(std::span<const std::byte> bytes,
                                             Deadline deadline) const;
  [[nodiscard]] Result<Ok, SocketError> receive(std::span<std::byte> bytes,
                                                Deadline deadline) const;

  // The other end is gone, whatever of it is left to receive.
  [[nodiscard]] bool ended() const;

  // Places in `sockets` of those where something has come or the other end is gone; waits until
  // there are some, or none in time.
  [[nodiscard]] static std::vector<std::size_t> wait_for_any(std::span<const Socket* const> sockets,
                                                             Deadline deadline);

 private:
  [[nodiscard]] static Result<Socket, SocketError> open(int family, const std::string& interface);
  explicit Socket(int file) : file_(file) {}

  int file_ = -1;
};

}  // namespace harpe
