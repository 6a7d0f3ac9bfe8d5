#include "transport/handshake.h"

#include <string_view>

namespace harpe::transport {
namespace {

constexpr std::uint32_t kMark = 0x4850524e;  // a process that connects by mistake does not send it

// How a guest introduces itself, and how rank 0 answers before and after the guest's proof.
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

// Zeros prove nothing: their sender has found that the other side is not of its run.
constexpr Proof kNoProof{};

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

Diag other_secret(const Meeting& meeting, const std::string& who) {
  return make_diag(DiagCode::N011,
                   {{"rank", meeting.rank}, {"address", meeting.address}, {"peer", who}});
}

Diag other_version(const Meeting& meeting, const std::string& who, std::uint32_t found) {
  return make_diag(DiagCode::N012, {{"rank", meeting.rank},
                                    {"address", meeting.address},
                                    {"peer", who},
                                    {"found", found},
                                    {"own", kRendezvousVersion}});
}

Diag misplaced(const Meeting& meeting, const std::string& who, const std::string& reason) {
  return make_diag(
      DiagCode::N014,
      {{"rank", meeting.rank}, {"address", meeting.address}, {"peer", who}, {"reason", reason}});
}

// Why a rank has no valid place here.
std::optional<std::string> judge_place(const Hello& hello, const Meeting& meeting,
                                       const std::function<bool(int)>& is_here) {
  if (hello.ranks != meeting.ranks) {
    return "it expects " + std::to_string(hello.ranks) + " ranks, and there are " +
           std::to_string(meeting.ranks);
  }
  if (hello.rank < 1 || hello.rank >= hello.ranks) {
    return "there is no such rank among " + std::to_string(hello.ranks);
  }
  if (is_here(hello.rank)) return "that rank is here already";
  return std::nullopt;
}

}  // namespace

Diag not_met(const Meeting& meeting, const std::string& reason) {
  return make_diag(DiagCode::N010,
                   {{"rank", meeting.rank}, {"address", meeting.address}, {"reason", reason}});
}

Greeted greet(Socket guest, const Meeting& meeting, const std::function<bool(int)>& is_here,
              Deadline deadline) {
  Hello hello;
  if (!guest.receive(bytes_of(hello), deadline).ok() || hello.mark != kMark) {
    return Refused{misplaced(meeting, "a process at " + guest.remote(),
                             "it did not send the greeting of a rank of harpe")};
  }
  const std::string who = "rank " + std::to_string(hello.rank) + " from " + guest.remote();
  Answer answer{.ranks = meeting.ranks, .nonce = draw_nonce()};
  const auto turn_away = [&](Judgement judgement, Diag why) -> Greeted {
    answer.judgement = judgement;
    // Whether it receives the answer does not matter: it will not join.
    static_cast<void>(guest.send(bytes_of(answer), deadline));
    return Refused{.why = std::move(why), .is_of_this_run = judgement == Judgement::OtherPlace};
  };
  if (hello.version != kRendezvousVersion) {
    return turn_away(Judgement::OtherVersion, other_version(meeting, who, hello.version));
  }
  // Only a process that knows the secret learns more than this.
  answer.proof = prove_as("harpe host", meeting.secret, hello, answer.nonce);
  Proof proof{};
  if (!guest.send(bytes_of(answer), deadline).ok() || !guest.receive(proof, deadline).ok()) {
    return Refused{not_met(meeting, who + " left before it had proved itself")};
  }
  if (!is_same(proof, prove_as("harpe guest", meeting.secret, hello, answer.nonce))) {
    return turn_away(Judgement::OtherSecret, other_secret(meeting, who));
  }
  if (const auto reason = judge_place(hello, meeting, is_here)) {
    return turn_away(Judgement::OtherPlace, misplaced(meeting, who, *reason));
  }
  if (!guest.send(bytes_of(answer), deadline).ok()) {
    return Refused{.why = not_met(meeting, who + " left before it was welcome"),
                   .is_of_this_run = true};
  }
  const Proof key = prove_as("harpe session", meeting.secret, hello, answer.nonce);
  return Guest{.rank = hello.rank, .link = Sealed(std::move(guest), key, true)};
}

Checked<Sealed> introduce(Socket host, const Meeting& meeting, Deadline deadline) {
  const auto lost = [&](const SocketError& error) {
    return not_met(meeting, error.is_gone ? "rank 0 is gone" : "rank 0: " + error.reason);
  };
  Hello hello{.rank = meeting.rank, .ranks = meeting.ranks, .nonce = draw_nonce()};
  Answer answer;
  if (auto sent = host.send(bytes_of(hello), deadline); !sent.ok()) return lost(sent.error());
  if (auto got = host.receive(bytes_of(answer), deadline); !got.ok()) return lost(got.error());
  if (answer.mark != kMark) return not_met(meeting, "who listens there is no rank 0");
  if (answer.version != kRendezvousVersion) {
    return other_version(meeting, "rank 0", answer.version);
  }
  const bool is_known =
      is_same(answer.proof, prove_as("harpe host", meeting.secret, hello, answer.nonce));
  Proof proof = is_known ? prove_as("harpe guest", meeting.secret, hello, answer.nonce) : kNoProof;
  const auto sent = host.send(proof, deadline);
  if (!is_known) return other_secret(meeting, "rank 0");
  if (!sent.ok()) return lost(sent.error());
  const Proof key = prove_as("harpe session", meeting.secret, hello, answer.nonce);
  if (auto got = host.receive(bytes_of(answer), deadline); !got.ok()) return lost(got.error());
  if (answer.judgement != Judgement::Welcome) {
    return not_met(meeting, "rank 0 refuses it; this rank is " + std::to_string(meeting.rank) +
                                " of " + std::to_string(meeting.ranks) + ", and there are " +
                                std::to_string(answer.ranks));
  }
  return Sealed(std::move(host), key, false);
}

}  // namespace harpe::transport
