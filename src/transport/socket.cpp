#include "transport/socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace harpe {
namespace {

SocketError failed(const std::string& call, int number) {
  return {.reason = call + ": " + std::strerror(number),
          .is_gone = number == EPIPE || number == ECONNRESET,
          .number = number};
}

// An address to bind or connect to.
struct Place {
  int family = AF_UNSPEC;
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

Result<Place, SocketError> unix_place(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof(address.sun_path)) {
    return SocketError{"a name of " + std::to_string(name.size()) + " bytes is none of a socket"};
  }
  std::ranges::copy(name, address.sun_path);
  const bool is_abstract = name[0] == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  Place place;
  place.family = AF_UNIX;
  // The length of an abstract name ends it; a path ends with a zero.
  place.length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1));
  std::memcpy(&place.storage, &address, sizeof(address));
  return place;
}

Result<Place, SocketError> network_place(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return SocketError{"there is no port after a colon"};
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (status != 0) return SocketError{std::string("getaddrinfo: ") + ::gai_strerror(status)};
  Place place;
  place.family = found->ai_family;
  place.length = found->ai_addrlen;
  std::memcpy(&place.storage, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return place;
}

Result<Place, SocketError> place_of(const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix)) return unix_place(address.substr(kUnix.size()));
  return network_place(address);
}

// Waits until one of the files is ready for its `events`.
Result<Ok, SocketError> poll_until(std::span<pollfd> files, Deadline deadline) {
  while (true) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (rest.count() <= 0) return SocketError{"the time is over"};
    const int count = ::poll(files.data(), files.size(),
                             static_cast<int>(std::min<std::int64_t>(rest.count(), 60'000)));
    if (count > 0) return Ok{};
    if (count < 0 && errno != EINTR) return failed("poll", errno);
  }
}

Result<Ok, SocketError> ready(int file, short events, Deadline deadline) {
  pollfd waited{.fd = file, .events = events, .revents = 0};
  return poll_until(std::span(&waited, 1), deadline);
}

const SocketError kGone{.reason = "the other end is gone", .is_gone = true};

// Whether accept failed because of the pending connection or its network, not of this socket.
bool is_of_guest(int number) {
  constexpr std::array kNumbers = {ECONNABORTED, EPROTO,       ENETDOWN,   ENOPROTOOPT, EHOSTDOWN,
                                   ENONET,       EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, EPERM};
  return std::ranges::find(kNumbers, number) != kNumbers.end();
}

bool try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<Socket, SocketError> Socket::open(int family, const std::string& interface) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.file_ < 0) return failed("socket", errno);
  if (family != AF_UNIX && !interface.empty() &&
      ::setsockopt(socket.file_, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                   static_cast<socklen_t>(interface.size())) != 0) {
    return failed("setsockopt SO_BINDTODEVICE to `" + interface + "`", errno);
  }
  return socket;
}

Result<Socket, SocketError> Socket::listen(const std::string& address,
                                           const std::string& interface) {
  HP_TRY(const Place place, place_of(address));
  HP_TRY(Socket socket, open(place.family, interface));
  const int yes = 1;
  ::setsockopt(socket.file_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(socket.file_, place.address(), place.length) != 0) return failed("bind", errno);
  if (::listen(socket.file_, SOMAXCONN) != 0) return failed("listen", errno);
  return socket;
}

Result<Socket, SocketError> Socket::connect(const std::string& address, Deadline deadline,
                                            const std::string& interface) {
  HP_TRY(const Place place, place_of(address));
  while (true) {
    HP_TRY(Socket socket, open(place.family, interface));
    if (::connect(socket.file_, place.address(), place.length) == 0) return socket;
    const int number = errno;
    if (number != ECONNREFUSED && number != ENOENT && !try_again())
      return failed("connect", number);
    if (std::chrono::steady_clock::now() >= deadline) return failed("connect", number);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Socket::Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

Socket::~Socket() {
  if (file_ >= 0) ::close(file_);
}

Result<Socket, SocketError> Socket::accept(Deadline deadline) const {
  while (true) {
    HP_REQUIRE_OK(ready(file_, POLLIN, deadline));
    Socket socket(::accept4(file_, nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.file_ >= 0) return socket;
    if (!try_again() && !is_of_guest(errno)) return failed("accept", errno);
  }
}

std::string Socket::remote() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(file_, place, &length) != 0 || address.ss_family == AF_UNIX ||
      ::getnameinfo(place, length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "this machine";
  }
  return std::string(host.data()) + ":" + port.data();
}

Result<Ok, SocketError> Socket::send(std::span<const std::byte> bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    HP_REQUIRE_OK(ready(file_, POLLOUT, deadline));
    const ssize_t count = ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && !try_again()) return failed("send", errno);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return Ok{};
}

Result<Ok, SocketError> Socket::receive(std::span<std::byte> bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    HP_REQUIRE_OK(ready(file_, POLLIN, deadline));
    const ssize_t count = ::recv(file_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0) return kGone;
    if (count < 0 && !try_again()) return failed("recv", errno);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return Ok{};
}

bool Socket::ended() const {
  pollfd asked{.fd = file_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&asked, 1, 0) > 0;
}

std::vector<std::size_t> Socket::wait_for_any(std::span<const Socket* const> sockets,
                                              Deadline deadline) {
  std::vector<pollfd> files;
  files.reserve(sockets.size());
  for (const Socket* const socket : sockets) {
    files.push_back({.fd = socket->file_, .events = POLLIN, .revents = 0});
  }
  std::vector<std::size_t> places;
  if (!poll_until(files, deadline).ok()) return places;
  for (std::size_t at = 0; at < files.size(); ++at) {
    if (files[at].revents != 0) places.push_back(at);
  }
  return places;
}

}  // namespace harpe
