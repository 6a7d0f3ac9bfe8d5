#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/group/segments.h"

namespace harpe {

// What each rank of a group shows the others on this host: which executables it has executed, and
// how far it is. Nothing here waits for another rank.
class GroupBoard {
 public:
  // So many executions of each rank can be compared with those of others.
  static constexpr std::uint32_t kHistory = 1024;

  // Collective. Errors: Segments::make's; N017 a rank is on another host.
  [[nodiscard]] static Checked<GroupBoard> make(transport::Exchange& exchange);
  GroupBoard(GroupBoard&& other) noexcept;
  GroupBoard& operator=(GroupBoard&& other) = delete;
  ~GroupBoard();

  // An executable of the group's, which all ranks make in the same order: its number.
  [[nodiscard]] std::uint32_t add(std::string program);

  // This rank begins its next execution, of the executable of that number. Of two ranks that begin
  // executions at the same time at least one sees the other's. `places`: what else has to be equal
  // on all ranks, as a number.
  void begin(std::uint32_t executable, std::uint64_t places = 0);
  void step();  // ... has taken a step of it
  void end();   // ... has taken all: others need nothing of it any more
  void stop();  // ... has given up
  void clear();

  [[nodiscard]] int ranks() const { return static_cast<int>(processes_.size()); }
  // Of this rank's last `turns` executions, kHistory at most, the first that is not the same on
  // another rank (I311, with both).
  [[nodiscard]] std::optional<Diag> find_mismatch(std::uint32_t turns = 1) const;
  // Whether another rank has given up.
  [[nodiscard]] bool has_stopped() const;
  // Grows as others take steps.
  [[nodiscard]] std::uint64_t steps_of_others() const;
  // A rank whose process has ended in the middle of this rank's execution, and not because it had
  // given up.
  [[nodiscard]] std::optional<int> find_gone() const;

 private:
  struct Words;
  struct Turn;
  GroupBoard(Segments pages, int rank) : pages_(std::move(pages)), rank_(rank) {}
  [[nodiscard]] Checked<Ok> check_near(const std::vector<transport::Blob>& cards) const;
  void watch(const std::vector<transport::Blob>& cards);
  [[nodiscard]] Words& words(int rank) const;
  // None: the rank has not come so far, or was there too long ago.
  [[nodiscard]] std::optional<Turn> find_turn(int rank, std::uint32_t turn) const;
  [[nodiscard]] Diag describe(std::uint32_t turn, const Turn& own, int rank,
                              const Turn& other) const;

  Segments pages_;
  int rank_;
  std::uint32_t turn_ = 0;                     // executions begun
  std::vector<std::string> executables_ = {};  // by number: programs' names
  std::vector<int> processes_ = {};  // by rank: a descriptor that says when it ends, or -1
};

}  // namespace harpe
