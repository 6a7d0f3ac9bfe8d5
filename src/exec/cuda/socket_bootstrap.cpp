#include "exec/cuda/socket_bootstrap.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace harpe::cuda {
namespace {

constexpr std::uint32_t kMark = 0x48525045;  // who else connects by mistake does not send it
constexpr std::uint64_t kMostBytes = 1 << 20;

// How a guest introduces itself.
struct Hello {
  std::uint32_t mark = kMark;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
};

template <class Value>
std::span<std::byte> bytes_of(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Result<Ok, SocketError> send_blob(const Socket& socket, std::span<const std::byte> blob,
                                  Deadline deadline) {
  std::uint64_t size = blob.size();
  HP_REQUIRE_OK(socket.send(bytes_of(size), deadline));
  return socket.send(blob, deadline);
}

Result<Blob, SocketError> receive_blob(const Socket& socket, Deadline deadline) {
  std::uint64_t size = 0;
  HP_REQUIRE_OK(socket.receive(bytes_of(size), deadline));
  if (size > kMostBytes) return SocketError{"it sends " + std::to_string(size) + " bytes"};
  Blob blob(size);
  HP_REQUIRE_OK(socket.receive(blob, deadline));
  return blob;
}

}  // namespace

Diag to_diag(const BootstrapError& error) {
  return make_diag(DiagCode::G077,
                   {{"rank", error.rank}, {"address", error.address}, {"reason", error.reason}});
}

BootstrapError SocketBootstrap::wrong(const std::string& reason) const {
  return {.rank = meeting_.rank, .address = meeting_.address, .reason = reason};
}

Deadline SocketBootstrap::deadline() const {
  return std::chrono::steady_clock::now() + meeting_.limit;
}

Result<std::unique_ptr<SocketBootstrap>, BootstrapError> SocketBootstrap::meet(
    const Meeting& meeting) {
  HP_CHECK(meeting.rank >= 0 && meeting.rank < meeting.ranks, "a rank is one of the ranks");
  std::unique_ptr<SocketBootstrap> bootstrap(new SocketBootstrap(meeting));
  if (meeting.ranks == 1) return bootstrap;
  HP_REQUIRE_OK(meeting.rank == 0 ? bootstrap->gather_guests() : bootstrap->join_host());
  return bootstrap;
}

Result<Ok, BootstrapError> SocketBootstrap::gather_guests() {
  const Deadline end = deadline();
  const auto listener = Socket::listen(meeting_.address);
  if (!listener.ok()) return wrong(listener.error().reason);
  std::vector<std::optional<Socket>> guests(static_cast<std::size_t>(meeting_.ranks - 1));
  for (std::size_t missing = guests.size(); missing > 0;) {
    auto guest = listener->accept(end);
    if (!guest.ok()) {
      return wrong(std::to_string(missing) + " of " + std::to_string(meeting_.ranks) +
                   " ranks did not come: " + guest.error().reason);
    }
    Hello hello;
    const Deadline soon = std::min(end, std::chrono::steady_clock::now() + std::chrono::seconds(2));
    if (!guest->receive(bytes_of(hello), soon).ok() || hello.mark != kMark) continue;
    if (hello.ranks != meeting_.ranks || hello.rank < 1 || hello.rank >= meeting_.ranks) {
      return wrong("somebody came as rank " + std::to_string(hello.rank) + " of " +
                   std::to_string(hello.ranks) + ", and there are " +
                   std::to_string(meeting_.ranks));
    }
    std::optional<Socket>& place = guests[static_cast<std::size_t>(hello.rank - 1)];
    if (place) return wrong("rank " + std::to_string(hello.rank) + " came twice");
    place = std::move(guest).value();
    --missing;
  }
  for (std::optional<Socket>& guest : guests) others_.push_back(std::move(*guest));
  return Ok{};
}

Result<Ok, BootstrapError> SocketBootstrap::join_host() {
  const Deadline end = deadline();
  auto host = Socket::connect(meeting_.address, end);
  if (!host.ok()) return wrong("rank 0 is not there: " + host.error().reason);
  Hello hello{.mark = kMark, .rank = meeting_.rank, .ranks = meeting_.ranks};
  const auto sent = host->send(bytes_of(hello), end);
  if (!sent.ok()) return wrong("rank 0: " + sent.error().reason);
  others_.push_back(std::move(host).value());
  return Ok{};
}

Result<std::vector<Blob>, BootstrapError> SocketBootstrap::all_gather(
    std::span<const std::byte> own) {
  HP_CHECK(own.size() <= kMostBytes, "what ranks exchange here is small");
  return meeting_.rank == 0 ? gather_as_host(own) : gather_as_guest(own);
}

Result<std::vector<Blob>, BootstrapError> SocketBootstrap::gather_as_host(
    std::span<const std::byte> own) const {
  const Deadline end = deadline();
  std::vector<Blob> all = {Blob(own.begin(), own.end())};
  for (std::size_t at = 0; at < others_.size(); ++at) {
    auto blob = receive_blob(others_[at], end);
    if (!blob.ok()) return wrong("rank " + std::to_string(at + 1) + ": " + blob.error().reason);
    all.push_back(std::move(blob).value());
  }
  for (std::size_t at = 0; at < others_.size(); ++at) {
    for (const Blob& blob : all) {
      const auto sent = send_blob(others_[at], blob, end);
      if (!sent.ok()) return wrong("rank " + std::to_string(at + 1) + ": " + sent.error().reason);
    }
  }
  return all;
}

Result<std::vector<Blob>, BootstrapError> SocketBootstrap::gather_as_guest(
    std::span<const std::byte> own) const {
  const Deadline end = deadline();
  const auto sent = send_blob(others_.front(), own, end);
  if (!sent.ok()) return wrong("rank 0: " + sent.error().reason);
  std::vector<Blob> all;
  for (int rank = 0; rank < meeting_.ranks; ++rank) {
    auto blob = receive_blob(others_.front(), end);
    if (!blob.ok()) return wrong("rank 0: " + blob.error().reason);
    all.push_back(std::move(blob).value());
  }
  return all;
}

std::vector<std::optional<Blob>> SocketBootstrap::gather_left(std::span<const std::byte> own,
                                                              std::chrono::milliseconds limit) {
  HP_CHECK(own.size() < kMostBytes, "what ranks exchange here is small");
  const Deadline end = std::chrono::steady_clock::now() + limit;
  // Who asks rank 0 gives it time to ask all the others first.
  constexpr std::chrono::milliseconds kAnswer{500};
  return meeting_.rank == 0 ? gather_left_as_host(own, end)
                            : gather_left_as_guest(own, end + kAnswer);
}

std::vector<std::optional<Blob>> SocketBootstrap::gather_left_as_host(
    std::span<const std::byte> own, Deadline end) const {
  std::vector<std::optional<Blob>> all = {Blob(own.begin(), own.end())};
  for (const Socket& guest : others_) {
    auto blob = receive_blob(guest, end);
    all.push_back(blob.ok() ? std::optional(std::move(blob).value()) : std::nullopt);
  }
  for (std::size_t at = 0; at < others_.size(); ++at) {
    if (!all[at + 1]) continue;
    for (const std::optional<Blob>& blob : all) {
      // A first byte tells a blob from none.
      Blob framed(1 + (blob ? blob->size() : 0), std::byte{0});
      if (blob) {
        framed[0] = std::byte{1};
        std::ranges::copy(*blob, framed.begin() + 1);
      }
      const Deadline soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
      if (!send_blob(others_[at], framed, soon).ok()) break;
    }
  }
  return all;
}

std::vector<std::optional<Blob>> SocketBootstrap::gather_left_as_guest(
    std::span<const std::byte> own, Deadline end) const {
  std::vector<std::optional<Blob>> all(static_cast<std::size_t>(meeting_.ranks));
  const auto self = static_cast<std::size_t>(meeting_.rank);
  if (send_blob(others_.front(), own, end).ok()) {
    for (std::optional<Blob>& each : all) {
      const auto framed = receive_blob(others_.front(), end);
      if (!framed.ok() || framed->empty()) break;
      if (framed->front() == std::byte{1}) each = Blob(framed->begin() + 1, framed->end());
    }
  }
  all[self] = Blob(own.begin(), own.end());
  return all;
}

}  // namespace harpe::cuda
