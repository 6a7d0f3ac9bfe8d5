#include "transport/rendezvous.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

#include "support/limits.h"
#include "transport/interface.h"

namespace harpe::transport {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A sealed message's maximum, less the room for its head.
constexpr std::size_t kMostBytes = (1 << 20) - 64;
// For one guest, so that it cannot delay the others.
constexpr milliseconds kHandshake{2000};
// Maximum wait for other ranks' reports after news that a rank has exited or stopped.
constexpr milliseconds kAfterNews{1000};
constexpr milliseconds kSoon{200};  // for what should take no time
// Interval of signs of life.
constexpr milliseconds kBeat{250};

Deadline soon() { return Clock::now() + kSoon; }

enum class HeadKind : std::uint32_t { Blob, Gone, Stopped, Alive };

}  // namespace

// The begin of a message: a blob, news of a rank, or a sign of life of its sender.
struct Rendezvous::Head {
  HeadKind kind = HeadKind::Blob;
  std::int32_t rank = 0;

  [[nodiscard]] RankNews news() const { return {.rank = rank, .is_gone = kind == HeadKind::Gone}; }
};

struct Rendezvous::Message {
  Head head;
  Blob blob;
};

Diag Rendezvous::wrong(const std::string& reason) const {
  Diag diag = not_met(meeting_, reason);
  for (const Diag& refused : refused_) diag = with_note(std::move(diag), render_message(refused));
  return diag;
}

Deadline Rendezvous::deadline() const { return Clock::now() + meeting_.limit; }

Checked<std::unique_ptr<Rendezvous>> Rendezvous::meet(const Meeting& meeting) {
  HP_CHECK(meeting.rank >= 0 && meeting.rank < meeting.ranks, "a rank is one of the ranks");
  if (!meeting.interface.empty()) HP_REQUIRE_OK(address_on(meeting.interface));
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(meeting));
  if (meeting.ranks == 1) return rendezvous;
  HP_REQUIRE_OK(meeting.rank == 0 ? rendezvous->gather_guests() : rendezvous->join_host());
  return rendezvous;
}

bool Rendezvous::is_here(int rank) const {
  return std::ranges::find(others_, rank, &Other::rank) != others_.end();
}

Checked<Ok> Rendezvous::gather_guests() {
  const Deadline end = deadline();
  const auto listener = Socket::listen(meeting_.address, meeting_.interface);
  if (!listener.ok()) return wrong(listener.error().reason);
  while (std::ssize(others_) < meeting_.ranks - 1) {
    auto guest = listener->accept(std::min(end, soon()));
    if (guest.ok()) {
      HP_REQUIRE_OK(admit(std::move(guest).value(), end));
      continue;
    }
    if (const int number = guest.error().number; number != 0) {
      if (is_out_of_files(number)) return no_more(Limited::Files, number);
      return wrong(guest.error().reason);
    }
    const auto gone =
        std::ranges::find_if(others_, [](Other& each) { return each.link.socket().ended(); });
    if (gone != others_.end()) return wrong(lose(*gone, {.reason = "", .is_gone = true}));
    if (Clock::now() < end) continue;
    return wrong(std::to_string(meeting_.ranks - 1 - std::ssize(others_)) + " of " +
                 std::to_string(meeting_.ranks) + " ranks did not connect, " + name_missing() +
                 ": " + guest.error().reason);
  }
  std::ranges::sort(others_, {}, &Other::rank);
  return Ok{};
}

Checked<Ok> Rendezvous::admit(Socket guest, Deadline end) {
  Greeted greeted = greet(
      std::move(guest), meeting_, [this](int rank) { return is_here(rank); },
      std::min(end, Clock::now() + kHandshake));
  if (Guest* const known = std::get_if<Guest>(&greeted)) {
    others_.push_back({.link = std::move(known->link), .rank = known->rank, .given = {}});
    return Ok{};
  }
  const Refused& refused = std::get<Refused>(greeted);
  if (refused.is_of_this_run) return refused.why;
  // Warns only about the first few attempts of a persistent scanner.
  constexpr std::size_t kMostTold = 8;
  if (refused_.size() == kMostTold) return Ok{};
  refused_.push_back(refused.why);
  meeting_.warn(refused.why);
  return Ok{};
}

// "ranks 2, 3".
std::string Rendezvous::name_missing() const {
  std::string names;
  int count = 0;
  for (int rank = 1; rank < meeting_.ranks; ++rank) {
    if (is_here(rank)) continue;
    names += (count++ == 0 ? " " : ", ") + std::to_string(rank);
  }
  return (count == 1 ? "rank" : "ranks") + names;
}

Checked<Ok> Rendezvous::join_host() {
  const Deadline end = deadline();
  auto host = Socket::connect(meeting_.address, end, meeting_.interface);
  if (!host.ok()) {
    if (is_out_of_files(host.error().number)) return no_more(Limited::Files, host.error().number);
    return wrong("rank 0 is not there: " + host.error().reason);
  }
  HP_TRY(Sealed link, introduce(std::move(host).value(), meeting_, end));
  others_.push_back({.link = std::move(link), .rank = 0, .given = {}});
  return Ok{};
}

Checked<std::vector<Blob>> Rendezvous::all_gather(std::span<const std::byte> own) {
  HP_CHECK(own.size() <= kMostBytes, "what ranks exchange here is small");
  return meeting_.rank == 0 ? gather_as_host(own) : gather_as_guest(own);
}

Checked<std::vector<Blob>> Rendezvous::gather_as_host(std::span<const std::byte> own) {
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

Checked<std::vector<Blob>> Rendezvous::gather_as_guest(std::span<const std::byte> own) {
  const Deadline end = deadline();
  Other& host = others_.front();
  const auto sent = send_blob(host, own, end);
  // Messages that rank 0 sent before it exited are more informative.
  const Deadline received_by = sent.ok() ? end : soon();
  std::vector<Blob> all;
  for (int rank = 0; rank < meeting_.ranks; ++rank) {
    auto blob = receive_blob(host, Until::FirstGone, received_by);
    if (!blob.ok()) return wrong(lose(host, sent.ok() ? blob.error() : sent.error()));
    all.push_back(std::move(blob).value());
  }
  return all;
}

std::vector<std::optional<Blob>> Rendezvous::gather_left(std::span<const std::byte> own,
                                                         milliseconds limit, milliseconds silence) {
  HP_CHECK(own.size() < kMostBytes, "what ranks exchange here is small");
  const Deadline end = Clock::now() + limit;
  // Gives rank 0 time to gather the others' blobs first.
  constexpr milliseconds kAnswer{500};
  return meeting_.rank == 0 ? gather_left_as_host(own, end, silence)
                            : gather_left_as_guest(own, end + kAnswer, silence);
}

std::vector<std::optional<Blob>> Rendezvous::gather_left_as_host(std::span<const std::byte> own,
                                                                 Deadline end,
                                                                 milliseconds silence) {
  std::vector<std::optional<Blob>> all = {Blob(own.begin(), own.end())};
  Received received = receive_from_all(Until::All, end, silence);
  std::ranges::move(received.blobs, std::back_inserter(all));
  for (Other& other : others_) {
    if (!all[static_cast<std::size_t>(other.rank)]) continue;
    for (const std::optional<Blob>& blob : all) {
      // A first byte distinguishes a blob from none.
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

std::vector<std::optional<Blob>> Rendezvous::gather_left_as_guest(std::span<const std::byte> own,
                                                                  Deadline end,
                                                                  milliseconds silence) {
  std::vector<std::optional<Blob>> all(static_cast<std::size_t>(meeting_.ranks));
  Other& host = others_.front();
  // If rank 0 has sent its answers and exited, they can still be read.
  static_cast<void>(send_blob(host, own, std::min(end, soon())));
  for (std::optional<Blob>& each : all) {
    const auto framed = receive_blob(host, Until::All, end, silence);
    if (!framed.ok()) static_cast<void>(lose(host, framed.error()));
    if (!framed.ok() || framed->empty()) break;
    if (framed->front() == std::byte{1}) each = Blob(framed->begin() + 1, framed->end());
  }
  all[static_cast<std::size_t>(meeting_.rank)] = Blob(own.begin(), own.end());
  return all;
}

Result<Ok, SocketError> Rendezvous::send(Other& other, const Head& head,
                                         std::span<const std::byte> blob, Deadline deadline) {
  const auto head_bytes = std::as_bytes(std::span(&head, 1));
  Blob message(head_bytes.begin(), head_bytes.end());
  message.insert(message.end(), blob.begin(), blob.end());
  return other.link.send(message, deadline);
}

Result<Ok, SocketError> Rendezvous::send_blob(Other& other, std::span<const std::byte> blob,
                                              Deadline deadline) {
  return send(other, {.kind = HeadKind::Blob, .rank = other.rank}, blob, deadline);
}

Result<Rendezvous::Message, SocketError> Rendezvous::receive(Other& other, Deadline deadline) {
  auto bytes = other.link.receive(deadline);
  if (!bytes.ok()) return bytes.error();
  Message message;
  if (bytes->size() < sizeof(Head)) return SocketError{.reason = "it sends no message"};
  std::memcpy(&message.head, bytes->data(), sizeof(Head));
  message.blob.assign(bytes->begin() + sizeof(Head), bytes->end());
  return message;
}

Result<std::optional<Blob>, SocketError> Rendezvous::receive_next(Other& other, Until until,
                                                                  Deadline deadline) {
  if (other.given) return std::exchange(other.given, std::nullopt);
  auto message = receive(other, deadline);
  if (!message.ok()) return message.error();
  other.heard = Clock::now();
  if (message->head.kind == HeadKind::Blob) return std::optional(std::move(message->blob));
  if (message->head.kind == HeadKind::Alive) return std::optional<Blob>();
  const RankNews news = message->head.news();
  keep(news);
  if (news.is_gone && until == Until::FirstGone) {
    return SocketError{.reason = "rank " + std::to_string(news.rank) + " is gone"};
  }
  return std::optional<Blob>();
}

Result<Blob, SocketError> Rendezvous::receive_blob(Other& other, Until until, Deadline deadline,
                                                   std::optional<milliseconds> silence) {
  while (true) {
    const Deadline by = silence ? std::min(deadline, Clock::now() + *silence) : deadline;
    HP_TRY(std::optional<Blob> blob, receive_next(other, until, by));
    if (blob) return *std::move(blob);
  }
}

Rendezvous::Received Rendezvous::receive_from_all(Until until, Deadline end,
                                                  std::optional<milliseconds> silence) {
  Received received;
  received.blobs.resize(others_.size());
  std::vector<Other*> missing;
  const auto fail = [&](Other& other, const SocketError& error) {
    const std::string reason = lose(other, error);
    if (received.failure.empty()) received.failure = reason;
    std::erase(missing, &other);
  };
  for (Other& other : others_) {
    missing.push_back(&other);
    other.heard = Clock::now();
    if (other.is_gone) fail(other, {.reason = "the other end is gone", .is_gone = true});
  }
  while (!missing.empty() && (until == Until::All || received.failure.empty())) {
    if (silence) beat();
    const Deadline until_now = news_since_ ? std::min(end, *news_since_ + kAfterNews) : end;
    const Deadline look = silence ? std::min(until_now, Clock::now() + kBeat) : until_now;
    for (Other* const other : wait_for(missing, look)) {
      auto blob = receive_next(*other, until, until_now);
      if (!blob.ok()) {
        fail(*other, blob.error());
      } else if (*blob) {
        received.blobs[static_cast<std::size_t>(other->rank - 1)] = std::move(blob).value();
        std::erase(missing, other);
      }
    }
    const Clock::time_point now = Clock::now();
    if (now >= until_now && !missing.empty()) {
      fail(*missing.front(), {.reason = "the time is over"});
      break;
    }
    const auto is_silent = [&](const Other* other) {
      return silence && now > other->heard + *silence;
    };
    for (Other* const other : std::vector<Other*>(missing)) {
      if (is_silent(other)) fail(*other, {.reason = "it has said nothing for too long"});
    }
  }
  return received;
}

std::vector<Rendezvous::Other*> Rendezvous::wait_for(const std::vector<Other*>& from,
                                                     Deadline deadline) {
  std::vector<Other*> ready;
  std::ranges::copy_if(from, std::back_inserter(ready),
                       [](const Other* other) { return other->given.has_value(); });
  if (!ready.empty()) return ready;
  std::vector<const Socket*> sockets;
  sockets.reserve(from.size());
  for (const Other* const other : from) sockets.push_back(&other->link.socket());
  for (const std::size_t at : Socket::wait_for_any(sockets, deadline)) ready.push_back(from[at]);
  return ready;
}

std::optional<RankNews> Rendezvous::listen(milliseconds limit) {
  const Deadline end = Clock::now() + limit;
  do {
    beat();
    std::vector<Other*> sources;
    for (Other& other : others_) {
      if (!other.is_gone && !other.given) sources.push_back(&other);
    }
    const Deadline look = std::min(end, Clock::now() + kBeat);
    if (sources.empty()) std::this_thread::sleep_until(look);
    for (Other* const other : wait_for(sources, look)) {
      const std::optional<RankNews> news = read_news(*other);
      if (!news) continue;
      keep(*news);
      return news;
    }
  } while (Clock::now() < end);
  return std::nullopt;
}

std::optional<RankNews> Rendezvous::read_news(Other& other) {
  auto message = receive(other, soon());
  if (!message.ok()) {
    other.is_gone = true;
    return RankNews{.rank = other.rank, .is_gone = true};
  }
  other.heard = Clock::now();
  if (message->head.kind == HeadKind::Alive) return std::nullopt;
  if (message->head.kind != HeadKind::Blob) return message->head.news();
  other.given = std::move(message->blob);
  return std::nullopt;
}

void Rendezvous::tell_stopped() {
  if (!news_since_) news_since_ = Clock::now();
  tell({.rank = meeting_.rank});
}

// Rank 0 forwards all news.
void Rendezvous::keep(const RankNews& news) {
  if (!news_since_) news_since_ = Clock::now();
  if (news.is_gone && !lost_) lost_ = news.rank;
  if (meeting_.rank == 0) tell(news);
}

void Rendezvous::tell(const RankNews& news) {
  const Head head{.kind = news.is_gone ? HeadKind::Gone : HeadKind::Stopped, .rank = news.rank};
  for (Other& other : others_) {
    if (other.is_gone || other.rank == news.rank) continue;
    static_cast<void>(send(other, head, {}, soon()));
  }
}

void Rendezvous::beat() {
  const Clock::time_point now = Clock::now();
  if (now < last_beat_ + kBeat) return;
  last_beat_ = now;
  for (Other& other : others_) {
    if (other.is_gone) continue;
    static_cast<void>(
        send(other, {.kind = HeadKind::Alive, .rank = meeting_.rank}, {}, now + kBeat));
  }
}

// Marks `other` as lost; returns the error for a report.
std::string Rendezvous::lose(Other& other, const SocketError& error) {
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

}  // namespace harpe::transport
