#include "exec/cuda/socket_bootstrap.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <thread>

namespace harpe::cuda {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMark = 0x48525045;  // who else connects by mistake does not send it
constexpr std::uint64_t kMostBytes = 1 << 20;
// Who heard that a rank is gone or has stopped waits no longer than this for what others say.
constexpr milliseconds kAfterNews{1000};
constexpr milliseconds kSoon{200};  // of what should take no time

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

Deadline soon() { return Clock::now() + kSoon; }

enum class HeadKind : std::uint32_t { Blob, Gone, Stopped };

}  // namespace

Diag to_diag(const BootstrapError& error) {
  return make_diag(DiagCode::G077,
                   {{"rank", error.rank}, {"address", error.address}, {"reason", error.reason}});
}

BootstrapError SocketBootstrap::wrong(const std::string& reason) const {
  return {.rank = meeting_.rank, .address = meeting_.address, .reason = reason};
}

Deadline SocketBootstrap::deadline() const { return Clock::now() + meeting_.limit; }

// What stands before everything that is sent: a blob of so many bytes, or news of a rank.
struct SocketBootstrap::Head {
  HeadKind kind = HeadKind::Blob;
  std::int32_t rank = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] RankNews news() const { return {.rank = rank, .is_gone = kind == HeadKind::Gone}; }
};

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
  while (std::ssize(others_) < meeting_.ranks - 1) {
    auto guest = listener->accept(std::min(end, soon()));
    if (guest.ok()) {
      HP_REQUIRE_OK(admit(std::move(guest).value(), end));
      continue;
    }
    const auto gone =
        std::ranges::find_if(others_, [](Other& each) { return each.socket.ended(); });
    if (gone != others_.end()) return wrong(lose(*gone, {.reason = "", .is_gone = true}));
    if (Clock::now() < end) continue;
    return wrong(std::to_string(meeting_.ranks - 1 - std::ssize(others_)) + " of " +
                 std::to_string(meeting_.ranks) + " ranks did not come, " + name_missing() + ": " +
                 guest.error().reason);
  }
  std::ranges::sort(others_, {}, &Other::rank);
  return Ok{};
}

// Whoever else connects is left alone.
Result<Ok, BootstrapError> SocketBootstrap::admit(Socket guest, Deadline end) {
  Hello hello;
  const Deadline hello_end = std::min(end, Clock::now() + std::chrono::seconds(2));
  if (!guest.receive(bytes_of(hello), hello_end).ok() || hello.mark != kMark) return Ok{};
  if (hello.ranks != meeting_.ranks || hello.rank < 1 || hello.rank >= meeting_.ranks) {
    return wrong("somebody came as rank " + std::to_string(hello.rank) + " of " +
                 std::to_string(hello.ranks) + ", and there are " + std::to_string(meeting_.ranks));
  }
  if (std::ranges::count(others_, hello.rank, &Other::rank) > 0) {
    return wrong("rank " + std::to_string(hello.rank) + " came twice");
  }
  others_.push_back({.socket = std::move(guest), .rank = hello.rank});
  return Ok{};
}

// "ranks 2, 3".
std::string SocketBootstrap::name_missing() const {
  std::string names;
  int count = 0;
  for (int rank = 1; rank < meeting_.ranks; ++rank) {
    if (std::ranges::count(others_, rank, &Other::rank) > 0) continue;
    names += (count++ == 0 ? " " : ", ") + std::to_string(rank);
  }
  return (count == 1 ? "rank" : "ranks") + names;
}

Result<Ok, BootstrapError> SocketBootstrap::join_host() {
  const Deadline end = deadline();
  auto host = Socket::connect(meeting_.address, end);
  if (!host.ok()) return wrong("rank 0 is not there: " + host.error().reason);
  Hello hello{.mark = kMark, .rank = meeting_.rank, .ranks = meeting_.ranks};
  const auto sent = host->send(bytes_of(hello), end);
  if (!sent.ok()) return wrong("rank 0: " + sent.error().reason);
  others_.push_back({.socket = std::move(host).value(), .rank = 0});
  return Ok{};
}

Result<std::vector<Blob>, BootstrapError> SocketBootstrap::all_gather(
    std::span<const std::byte> own) {
  HP_CHECK(own.size() <= kMostBytes, "what ranks exchange here is small");
  return meeting_.rank == 0 ? gather_as_host(own) : gather_as_guest(own);
}

Result<std::vector<Blob>, BootstrapError> SocketBootstrap::gather_as_host(
    std::span<const std::byte> own) {
  const Deadline end = deadline();
  std::vector<Blob> all = {Blob(own.begin(), own.end())};
  Received received = receive_from_all(Until::FirstGone, end);
  if (!received.failure.empty()) return wrong(received.failure);
  for (std::optional<Blob>& blob : received.blobs) all.push_back(*std::move(blob));
  for (Other& other : others_) {
    for (const Blob& blob : all) {
      const auto sent = send_blob(other, blob, end);
      if (sent.ok()) continue;
      return wrong(lose(other, sent.error()));
    }
  }
  return all;
}

Result<std::vector<Blob>, BootstrapError> SocketBootstrap::gather_as_guest(
    std::span<const std::byte> own) {
  const Deadline end = deadline();
  Other& host = others_.front();
  const auto sent = send_blob(host, own, end);
  // What it said before it went says more.
  const Deadline received_by = sent.ok() ? end : soon();
  std::vector<Blob> all;
  for (int rank = 0; rank < meeting_.ranks; ++rank) {
    auto blob = receive_blob(host, Until::FirstGone, received_by);
    if (!blob.ok()) return wrong(lose(host, sent.ok() ? blob.error() : sent.error()));
    all.push_back(std::move(blob).value());
  }
  return all;
}

std::vector<std::optional<Blob>> SocketBootstrap::gather_left(std::span<const std::byte> own,
                                                              milliseconds limit) {
  HP_CHECK(own.size() < kMostBytes, "what ranks exchange here is small");
  const Deadline end = Clock::now() + limit;
  // Who asks rank 0 gives it time to ask all the others first.
  constexpr milliseconds kAnswer{500};
  return meeting_.rank == 0 ? gather_left_as_host(own, end)
                            : gather_left_as_guest(own, end + kAnswer);
}

std::vector<std::optional<Blob>> SocketBootstrap::gather_left_as_host(
    std::span<const std::byte> own, Deadline end) {
  std::vector<std::optional<Blob>> all = {Blob(own.begin(), own.end())};
  Received received = receive_from_all(Until::All, end);
  std::ranges::move(received.blobs, std::back_inserter(all));
  for (const Other& other : others_) {
    if (!all[static_cast<std::size_t>(other.rank)]) continue;
    for (const std::optional<Blob>& blob : all) {
      // A first byte tells a blob from none.
      Blob framed(1 + (blob ? blob->size() : 0), std::byte{0});
      if (blob) {
        framed[0] = std::byte{1};
        std::ranges::copy(*blob, framed.begin() + 1);
      }
      if (!send_blob(other, framed, soon()).ok()) break;
    }
  }
  return all;
}

std::vector<std::optional<Blob>> SocketBootstrap::gather_left_as_guest(
    std::span<const std::byte> own, Deadline end) {
  std::vector<std::optional<Blob>> all(static_cast<std::size_t>(meeting_.ranks));
  Other& host = others_.front();
  // One that has given its answers already, and is gone, may be read still.
  static_cast<void>(send_blob(host, own, std::min(end, soon())));
  for (std::optional<Blob>& each : all) {
    const auto framed = receive_blob(host, Until::All, end);
    if (!framed.ok()) static_cast<void>(lose(host, framed.error()));
    if (!framed.ok() || framed->empty()) break;
    if (framed->front() == std::byte{1}) each = Blob(framed->begin() + 1, framed->end());
  }
  all[static_cast<std::size_t>(meeting_.rank)] = Blob(own.begin(), own.end());
  return all;
}

Result<Ok, SocketError> SocketBootstrap::send_blob(const Other& other,
                                                   std::span<const std::byte> blob,
                                                   Deadline deadline) {
  Head head{.kind = HeadKind::Blob, .rank = other.rank, .bytes = blob.size()};
  HP_REQUIRE_OK(other.socket.send(bytes_of(head), deadline));
  return other.socket.send(blob, deadline);
}

Result<Blob, SocketError> SocketBootstrap::receive_blob(Other& other, Until until,
                                                        Deadline deadline) {
  Head head;
  while (true) {
    HP_REQUIRE_OK(other.socket.receive(bytes_of(head), deadline));
    if (head.kind == HeadKind::Blob) break;
    keep(head.news());
    if (head.kind == HeadKind::Gone && until == Until::FirstGone) {
      return SocketError{.reason = "rank " + std::to_string(head.rank) + " is gone"};
    }
  }
  other.has_given = false;
  if (head.bytes > kMostBytes) {
    return SocketError{.reason = "it sends " + std::to_string(head.bytes) + " bytes"};
  }
  Blob blob(head.bytes);
  HP_REQUIRE_OK(other.socket.receive(blob, deadline));
  return blob;
}

SocketBootstrap::Received SocketBootstrap::receive_from_all(Until until, Deadline end) {
  Received received;
  received.blobs.resize(others_.size());
  std::vector<Other*> missing;
  for (Other& other : others_) missing.push_back(&other);
  const auto fail = [&](Other& other, const SocketError& error) {
    const std::string reason = lose(other, error);
    if (received.failure.empty()) received.failure = reason;
  };
  std::erase_if(missing, [&](Other* other) {
    if (other->is_gone) fail(*other, {.reason = "the other end is gone", .is_gone = true});
    return other->is_gone;
  });
  while (!missing.empty() && (until == Until::All || received.failure.empty())) {
    const Deadline until_now = news_since_ ? std::min(end, *news_since_ + kAfterNews) : end;
    std::vector<Other*> ready = wait_for(missing, until_now);
    if (ready.empty()) {
      fail(*missing.front(), {.reason = "the time is over"});
      break;
    }
    for (Other* const other : ready) {
      auto blob = receive_blob(*other, until, until_now);
      if (blob.ok()) {
        received.blobs[static_cast<std::size_t>(other->rank - 1)] = std::move(blob).value();
      } else {
        fail(*other, blob.error());
      }
      std::erase(missing, other);
    }
  }
  return received;
}

std::vector<SocketBootstrap::Other*> SocketBootstrap::wait_for(const std::vector<Other*>& from,
                                                               Deadline deadline) {
  std::vector<const Socket*> sockets;
  sockets.reserve(from.size());
  for (const Other* const other : from) sockets.push_back(&other->socket);
  std::vector<Other*> ready;
  for (const std::size_t at : Socket::wait_for_any(sockets, deadline)) ready.push_back(from[at]);
  return ready;
}

std::optional<RankNews> SocketBootstrap::listen(milliseconds limit) {
  const Deadline end = Clock::now() + limit;
  std::vector<Other*> sources;
  for (Other& other : others_) {
    if (!other.is_gone && !other.has_given) sources.push_back(&other);
  }
  if (sources.empty()) std::this_thread::sleep_until(end);
  for (Other* const other : wait_for(sources, end)) {
    const std::optional<RankNews> news = read_news(*other);
    if (!news) continue;
    keep(*news);
    return news;
  }
  return std::nullopt;
}

std::optional<RankNews> SocketBootstrap::read_news(Other& other) {
  Head head;
  const Result<bool, SocketError> is_there = other.socket.peek(bytes_of(head));
  if (!is_there.ok()) {
    other.is_gone = true;
    return RankNews{.rank = other.rank, .is_gone = true};
  }
  if (!*is_there) return std::nullopt;
  if (head.kind != HeadKind::Blob) {
    static_cast<void>(other.socket.receive(bytes_of(head), soon()));
    return head.news();
  }
  other.has_given = true;
  return std::nullopt;
}

void SocketBootstrap::tell_stopped() {
  if (!news_since_) news_since_ = Clock::now();
  tell({.rank = meeting_.rank});
}

// Rank 0 passes on what it hears.
void SocketBootstrap::keep(const RankNews& news) {
  if (!news_since_) news_since_ = Clock::now();
  if (news.is_gone && !lost_) lost_ = news.rank;
  if (meeting_.rank == 0) tell(news);
}

void SocketBootstrap::tell(const RankNews& news) const {
  Head head{.kind = news.is_gone ? HeadKind::Gone : HeadKind::Stopped, .rank = news.rank};
  for (const Other& other : others_) {
    if (other.is_gone || other.rank == news.rank) continue;
    static_cast<void>(other.socket.send(bytes_of(head), soon()));
  }
}

// `other` says nothing any more; the error as it is told.
std::string SocketBootstrap::lose(Other& other, const SocketError& error) {
  const bool is_news = !other.is_gone && error.is_gone;
  other.is_gone = other.is_gone || error.is_gone;
  if (!lost_) lost_ = other.rank;
  if (is_news) keep({.rank = other.rank, .is_gone = true});
  const bool is_answer = meeting_.rank != 0 && *lost_ != other.rank;
  if (is_answer || other.is_gone) {
    return "rank " + std::to_string(is_answer ? *lost_ : other.rank) + " is gone";
  }
  return "rank " + std::to_string(other.rank) + ": " + error.reason;
}

}  // namespace harpe::cuda
