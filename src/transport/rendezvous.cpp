#include "transport/rendezvous.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "transport/interface.h"

namespace harpe::transport {
namespace {

constexpr std::uint32_t kMark = 0x4850524e;  // who else connects by mistake does not send it
// Of one guest, who must not keep the others waiting.
constexpr std::chrono::milliseconds kHandshake{2'000};

// How a guest introduces itself; how rank 0 answers; how the guest proves who it is.
struct Hello {
  std::uint32_t mark = kMark;
  std::uint32_t version = kRendezvousVersion;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  Nonce nonce{};
};
enum class Judgement : std::uint32_t { Welcome, OtherVersion, OtherPlace, OtherSecret };
struct Answer {
  std::uint32_t mark = kMark;
  std::uint32_t version = kRendezvousVersion;
  Judgement judgement = Judgement::Welcome;
  std::int32_t ranks = 0;
  Nonce nonce{};
  Proof proof{};
};

template <class Value>
std::span<std::byte> bytes_of(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Proof prove_as(std::string_view role, const std::string& secret, Hello hello, Nonce nonce) {
  return prove(bytes_of(std::string_view(secret)),
               {bytes_of(role), bytes_of(hello), bytes_of(nonce)});
}

// Zeros prove nothing: who sends them knows that the other side is not of its run.
constexpr Proof kNoProof{};

}  // namespace

Diag Rendezvous::wrong(const std::string& reason) const {
  Diag diag = make_diag(
      DiagCode::N010, {{"rank", meeting_.rank}, {"address", meeting_.address}, {"reason", reason}});
  for (const Diag& refused : refused_) diag = with_note(std::move(diag), render_message(refused));
  return diag;
}

Diag Rendezvous::refuse(DiagCode code, const std::string& who) const {
  return make_diag(code, {{"rank", meeting_.rank}, {"address", meeting_.address}, {"peer", who}});
}

Deadline Rendezvous::deadline() const { return std::chrono::steady_clock::now() + meeting_.limit; }

Checked<std::unique_ptr<Rendezvous>> Rendezvous::meet(const Meeting& meeting) {
  HP_CHECK(meeting.rank >= 0 && meeting.rank < meeting.ranks, "a rank is one of the ranks");
  if (!meeting.interface.empty()) HP_REQUIRE_OK(address_on(meeting.interface));
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(meeting));
  if (meeting.ranks == 1) return rendezvous;
  HP_REQUIRE_OK(meeting.rank == 0 ? rendezvous->gather_guests() : rendezvous->join_host());
  return rendezvous;
}

Checked<Ok> Rendezvous::gather_guests() {
  const Deadline end = deadline();
  const auto listener = Socket::listen(meeting_.address, meeting_.interface);
  if (!listener.ok()) return wrong(listener.error().reason);
  others_.resize(static_cast<std::size_t>(meeting_.ranks - 1));
  for (int missing = meeting_.ranks - 1; missing > 0;) {
    auto guest = listener->accept(end);
    if (!guest.ok()) {
      return wrong(std::to_string(missing) + " of " + std::to_string(meeting_.ranks) +
                   " ranks did not come: " + guest.error().reason);
    }
    if (greet(std::move(guest).value(),
              std::min(end, std::chrono::steady_clock::now() + kHandshake))) {
      --missing;
    }
  }
  return Ok{};
}

std::optional<Diag> Rendezvous::judge_place(int rank, int ranks, const std::string& who) const {
  std::string reason;
  if (ranks != meeting_.ranks) {
    reason = "it knows of " + std::to_string(ranks) + " ranks, and there are " +
             std::to_string(meeting_.ranks);
  } else if (rank < 1 || rank >= ranks) {
    reason = "there is no such rank among " + std::to_string(ranks);
  } else if (others_[static_cast<std::size_t>(rank - 1)]) {
    reason = "that rank is here already";
  } else {
    return std::nullopt;
  }
  return make_diag(
      DiagCode::N014,
      {{"rank", meeting_.rank}, {"address", meeting_.address}, {"peer", who}, {"reason", reason}});
}

std::optional<int> Rendezvous::greet(Socket guest, Deadline deadline) {
  Hello hello;
  if (!guest.receive(bytes_of(hello), deadline).ok() || hello.mark != kMark) return std::nullopt;
  const std::string who = "rank " + std::to_string(hello.rank) + " from " + guest.remote();
  Answer answer{.ranks = meeting_.ranks, .nonce = draw_nonce()};
  const auto turn_away = [&](Judgement judgement, Diag why) {
    refused_.push_back(std::move(why));
    answer.judgement = judgement;
    // Whether it hears that or not, it is not of this run.
    (void)guest.send(bytes_of(answer), deadline).ok();
    return std::nullopt;
  };
  if (hello.version != kRendezvousVersion) {
    Diag diag = make_diag(DiagCode::N012, {{"rank", meeting_.rank},
                                           {"address", meeting_.address},
                                           {"peer", who},
                                           {"found", hello.version},
                                           {"own", kRendezvousVersion}});
    return turn_away(Judgement::OtherVersion, std::move(diag));
  }
  // Only who knows the secret learns more than that.
  answer.proof = prove_as("harpe host", meeting_.secret, hello, answer.nonce);
  Proof proof{};
  if (!guest.send(bytes_of(answer), deadline).ok() || !guest.receive(proof, deadline).ok()) {
    refused_.push_back(wrong(who + " left before it had proved itself"));
    return std::nullopt;
  }
  if (!is_same(proof, prove_as("harpe guest", meeting_.secret, hello, answer.nonce))) {
    return turn_away(Judgement::OtherSecret, refuse(DiagCode::N011, who));
  }
  if (auto misplaced = judge_place(hello.rank, hello.ranks, who)) {
    return turn_away(Judgement::OtherPlace, *std::move(misplaced));
  }
  if (!guest.send(bytes_of(answer), deadline).ok()) return std::nullopt;
  const Proof key = prove_as("harpe session", meeting_.secret, hello, answer.nonce);
  others_[static_cast<std::size_t>(hello.rank - 1)].emplace(std::move(guest), key, true);
  return hello.rank;
}

Checked<Ok> Rendezvous::join_host() {
  const Deadline end = deadline();
  auto host = Socket::connect(meeting_.address, end, meeting_.interface);
  if (!host.ok()) return wrong("rank 0 is not there: " + host.error().reason);
  const auto lost = [&](const SocketError& error) { return wrong("rank 0: " + error.reason); };
  Hello hello{.rank = meeting_.rank, .ranks = meeting_.ranks, .nonce = draw_nonce()};
  Answer answer;
  if (auto sent = host->send(bytes_of(hello), end); !sent.ok()) return lost(sent.error());
  if (auto got = host->receive(bytes_of(answer), end); !got.ok()) return lost(got.error());
  if (answer.mark != kMark) return wrong("who listens there is no rank 0");
  if (answer.version != kRendezvousVersion) {
    return make_diag(DiagCode::N012, {{"rank", meeting_.rank},
                                      {"address", meeting_.address},
                                      {"peer", "rank 0"},
                                      {"found", answer.version},
                                      {"own", kRendezvousVersion}});
  }
  const bool is_known =
      is_same(answer.proof, prove_as("harpe host", meeting_.secret, hello, answer.nonce));
  Proof proof = is_known ? prove_as("harpe guest", meeting_.secret, hello, answer.nonce) : kNoProof;
  const auto sent = host->send(proof, end);
  if (!is_known) return refuse(DiagCode::N011, "rank 0");
  if (!sent.ok()) return lost(sent.error());
  const Proof key = prove_as("harpe session", meeting_.secret, hello, answer.nonce);
  if (auto got = host->receive(bytes_of(answer), end); !got.ok()) return lost(got.error());
  if (answer.judgement != Judgement::Welcome) {
    return wrong("rank 0 refuses it; this rank is " + std::to_string(meeting_.rank) + " of " +
                 std::to_string(meeting_.ranks) + ", and there are " +
                 std::to_string(answer.ranks));
  }
  others_.emplace_back(std::in_place, std::move(host).value(), key, false);
  return Ok{};
}

Checked<std::vector<Blob>> Rendezvous::all_gather(std::span<const std::byte> own) {
  return meeting_.rank == 0 ? gather_as_host(own) : gather_as_guest(own);
}

Checked<std::vector<Blob>> Rendezvous::gather_as_host(std::span<const std::byte> own) {
  const Deadline end = deadline();
  std::vector<Blob> all = {Blob(own.begin(), own.end())};
  for (std::size_t at = 0; at < others_.size(); ++at) {
    auto blob = others_[at]->receive(end);
    if (!blob.ok()) return wrong("rank " + std::to_string(at + 1) + ": " + blob.error().reason);
    all.push_back(std::move(blob).value());
  }
  for (std::size_t at = 0; at < others_.size(); ++at) {
    for (const Blob& blob : all) {
      const auto sent = others_[at]->send(blob, end);
      if (!sent.ok()) return wrong("rank " + std::to_string(at + 1) + ": " + sent.error().reason);
    }
  }
  return all;
}

Checked<std::vector<Blob>> Rendezvous::gather_as_guest(std::span<const std::byte> own) {
  const Deadline end = deadline();
  Sealed& host = *others_.front();
  const auto sent = host.send(own, end);
  if (!sent.ok()) return wrong("rank 0: " + sent.error().reason);
  std::vector<Blob> all;
  for (int rank = 0; rank < meeting_.ranks; ++rank) {
    auto blob = host.receive(end);
    if (!blob.ok()) return wrong("rank 0: " + blob.error().reason);
    all.push_back(std::move(blob).value());
  }
  return all;
}

}  // namespace harpe::transport
