#include "exec/group/group_board.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <utility>

namespace harpe {
namespace {

struct BoardCard {
  std::int64_t process = 0;  // process id
  std::uint64_t token = 0;
};

BoardCard read_card(const transport::Blob& blob) {
  BoardCard card;
  if (blob.size() == sizeof(card)) std::memcpy(&card, blob.data(), sizeof(card));
  return card;
}

}  // namespace

struct GroupBoard::Turn {
  std::uint32_t executable = 0;
  std::uint64_t places = 0;
  friend bool operator==(const Turn&, const Turn&) = default;
};

// A turn in which this rank and another execute different things.
struct GroupBoard::Difference {
  std::uint32_t turn = 0;
  Turn own;
  int rank = 0;  // the other
  Turn other;
};

// Valid when all zero, as fresh memory is. Rarely written fields and `steps` have separate cache
// lines.
struct GroupBoard::Words {
  static constexpr std::size_t kLine = 64;
  // The last execution with this number modulo kHistory. `places` is written while `turn` is 0.
  struct Entry {
    std::atomic<std::uint64_t> turn;  // the turn, and in the lower 32 bits the executable
    std::atomic<std::uint64_t> places;
  };

  std::uint64_t token;                 // equals the rank's card
  std::atomic<std::uint32_t> stopped;  // the turn in which the rank gave up, or 0
  alignas(kLine) std::atomic<std::uint64_t> steps;
  std::atomic<std::uint32_t> ended;  // the last turn that has ended
  alignas(kLine) std::array<Entry, kHistory> entries;
};

Checked<GroupBoard> GroupBoard::make(transport::Exchange& exchange) {
  HP_TRY(Segments pages, Segments::make(static_cast<std::int64_t>(sizeof(Words)), exchange));
  GroupBoard board(std::move(pages), exchange.rank());
  const BoardCard own{.process = ::getpid(), .token = std::random_device()()};
  board.words(board.rank_).token = own.token;
  HP_TRY(const auto cards, exchange.all_gather(std::as_bytes(std::span(&own, 1))));
  const Checked<Ok> near = board.check_near(cards);
  HP_REQUIRE_OK(agree(exchange, near.ok() ? std::nullopt : std::optional(near.error())));
  board.watch(cards);
  return board;
}

// A card of another host may match an unrelated process of this host; the token reveals that.
Checked<Ok> GroupBoard::check_near(const std::vector<transport::Blob>& cards) const {
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (words(static_cast<int>(rank)).token == read_card(cards[rank]).token) continue;
    return make_diag(DiagCode::N017, {{"rank", rank}, {"reason", "it is on another host"}});
  }
  return Ok{};
}

GroupBoard::GroupBoard(GroupBoard&& other) noexcept
    : pages_(std::move(other.pages_)),
      rank_(other.rank_),
      turn_(other.turn_),
      executables_(std::move(other.executables_)),
      processes_(std::exchange(other.processes_, {})) {}

GroupBoard::~GroupBoard() {
  for (const int process : processes_) {
    if (process >= 0) ::close(process);
  }
}

// If the system has no pidfds, waits for an exited process end only by their limit.
void GroupBoard::watch(const std::vector<transport::Blob>& cards) {
  for (const transport::Blob& blob : cards) {
    const std::int64_t process = read_card(blob).process;
    const bool is_other = process > 0 && process != ::getpid();
    processes_.push_back(is_other ? static_cast<int>(::syscall(SYS_pidfd_open, process, 0)) : -1);
  }
}

GroupBoard::Words& GroupBoard::words(int rank) const {
  return *reinterpret_cast<Words*>(pages_.of(rank).data());
}

std::uint32_t GroupBoard::add(std::string program) {
  executables_.push_back(std::move(program));
  return static_cast<std::uint32_t>(executables_.size() - 1);
}

// Sequentially consistent, because find_mismatch loads other ranks' entries after this store.
void GroupBoard::begin(std::uint32_t executable, std::uint64_t places) {
  Words::Entry& entry = words(rank_).entries[++turn_ % kHistory];
  entry.turn.store(0, std::memory_order_relaxed);
  entry.places.store(places, std::memory_order_release);
  entry.turn.store(std::uint64_t{turn_} << 32U | executable);
}

void GroupBoard::step() { words(rank_).steps.fetch_add(1, std::memory_order_relaxed); }

void GroupBoard::end() { words(rank_).ended.store(turn_, std::memory_order_relaxed); }

void GroupBoard::stop() {
  const std::optional<Difference> found = find_difference(kHistory);
  words(rank_).stopped.store(found ? found->turn : turn_, std::memory_order_relaxed);
}

void GroupBoard::clear() {
  turn_ = 0;
  end();
  for (Words::Entry& entry : words(rank_).entries) entry.turn.store(0, std::memory_order_relaxed);
  words(rank_).stopped.store(0, std::memory_order_relaxed);
}

std::optional<GroupBoard::Turn> GroupBoard::find_turn(int rank, std::uint32_t turn) const {
  const Words::Entry& entry = words(rank).entries[turn % kHistory];
  const std::uint64_t word = entry.turn.load();
  if (word >> 32U != turn) return std::nullopt;
  const std::uint64_t places = entry.places.load(std::memory_order_acquire);
  if (entry.turn.load(std::memory_order_relaxed) != word) return std::nullopt;
  return Turn{.executable = static_cast<std::uint32_t>(word), .places = places};
}

std::optional<GroupBoard::Difference> GroupBoard::find_difference(std::uint32_t turns) const {
  for (std::uint32_t back = std::min({turns, turn_, kHistory}); back-- > 0;) {
    const std::uint32_t turn = turn_ - back;
    const std::optional<Turn> own = find_turn(rank_, turn);
    for (int rank = 0; own && rank < ranks(); ++rank) {
      if (rank == rank_) continue;
      const std::optional<Turn> other = find_turn(rank, turn);
      if (other && *other != *own) return Difference{turn, *own, rank, *other};
    }
  }
  return std::nullopt;
}

std::optional<Diag> GroupBoard::find_mismatch(std::uint32_t turns) const {
  const std::optional<Difference> found = find_difference(turns);
  return found ? std::optional(describe(*found)) : std::nullopt;
}

Diag GroupBoard::describe(const Difference& found) const {
  const auto name = [&](const Turn& of, int at) {
    return "executable " + std::to_string(of.executable) + " (`" + executables_[of.executable] +
           "`) on rank " + std::to_string(at);
  };
  const bool is_same = found.own.executable == found.other.executable;
  return make_diag(
      DiagCode::I311,
      {{"argument", "execution " + std::to_string(found.turn) + " of the group"},
       {"wanted", is_same ? "of tensors that are, on all ranks or on none, at the same place of "
                            "the group's memory for tensors"
                          : "of the same plan on all ranks"},
       {"found", name(found.own, rank_) + " and " +
                     (is_same ? "otherwise on rank " + std::to_string(found.rank)
                              : name(found.other, found.rank))}});
}

bool GroupBoard::has_stopped() const {
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::uint32_t stopped = words(rank).stopped.load(std::memory_order_relaxed);
    if (rank != rank_ && stopped != 0 && stopped <= turn_) return true;
  }
  return false;
}

std::uint64_t GroupBoard::steps_of_others() const {
  std::uint64_t steps = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank != rank_) steps += words(rank).steps.load(std::memory_order_relaxed);
  }
  return steps;
}

std::optional<int> GroupBoard::find_gone() const {
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    pollfd ended{.fd = processes_[rank], .events = POLLIN, .revents = 0};
    if (processes_[rank] < 0 || ::poll(&ended, 1, 0) != 1) continue;
    // A rank may exit once it has done its part, while this rank waits for slower ones, or because
    // a third rank has exited; the report must name that third rank.
    const Words& gone = words(static_cast<int>(rank));
    if (gone.ended.load(std::memory_order_acquire) >= turn_ || gone.stopped != 0) continue;
    return static_cast<int>(rank);
  }
  return std::nullopt;
}

}  // namespace harpe
