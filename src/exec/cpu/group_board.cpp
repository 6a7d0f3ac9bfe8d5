#include "exec/cpu/group_board.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <utility>

namespace harpe::cpu {
namespace {

struct BoardCard {
  std::int64_t process = 0;  // of the system
  std::uint64_t token = 0;
};

BoardCard read_card(const transport::Blob& blob) {
  BoardCard card;
  if (blob.size() == sizeof(card)) std::memcpy(&card, blob.data(), sizeof(card));
  return card;
}

}  // namespace

// All zero at first, as memory is.
struct GroupBoard::Words {
  std::uint64_t token;              // as the rank's card has it
  std::atomic<std::uint64_t> turn;  // and behind it, in the lower half, the executable
  std::atomic<std::uint64_t> steps;
  std::atomic<std::uint32_t> ended;  // the last turn that is over
  std::atomic<bool> has_stopped;
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

// A process of that number with such a file may be on this host too, and be a stranger.
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
      processes_(std::exchange(other.processes_, {})) {}

GroupBoard::~GroupBoard() {
  for (const int process : processes_) {
    if (process >= 0) ::close(process);
  }
}

// Where the system cannot say that a process has ended, waits for it end by their limit.
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

void GroupBoard::begin(std::uint32_t turn, std::uint32_t executable) {
  words(rank_).turn.store(std::uint64_t{turn} << 32U | executable, std::memory_order_relaxed);
}

void GroupBoard::step() { words(rank_).steps.fetch_add(1, std::memory_order_relaxed); }

void GroupBoard::end() { words(rank_).ended.store(turn(), std::memory_order_relaxed); }

void GroupBoard::stop() { words(rank_).has_stopped.store(true, std::memory_order_relaxed); }

void GroupBoard::clear() {
  begin(0, 0);
  end();
  words(rank_).has_stopped.store(false, std::memory_order_relaxed);
}

GroupBoard::Shown GroupBoard::of(int rank) const {
  const std::uint64_t turn = words(rank).turn.load(std::memory_order_relaxed);
  return {.turn = static_cast<std::uint32_t>(turn >> 32U),
          .executable = static_cast<std::uint32_t>(turn),
          .has_stopped = words(rank).has_stopped.load(std::memory_order_relaxed)};
}

std::uint32_t GroupBoard::turn() const { return of(rank_).turn; }

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
    // A rank may exit as soon as it has done its part, while this one waits for slower ones; or
    // because another is gone, which is the one to name.
    const Words& gone = words(static_cast<int>(rank));
    if (gone.ended.load(std::memory_order_acquire) == turn() || gone.has_stopped) continue;
    return static_cast<int>(rank);
  }
  return std::nullopt;
}

}  // namespace harpe::cpu
