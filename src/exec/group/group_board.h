#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/group/segments.h"

namespace harpe {

// What each rank of a group publishes to the others on this host: the executables it has executed,
// and its progress. No function here waits for another rank, except the collective `make`.
class GroupBoard {
 public:
  // How many past executions of a rank other ranks can compare.
  static constexpr std::uint32_t kHistory = 1024;

  // Collective. Errors: Segments::make's; N017 a rank is on another host.
  [[nodiscard]] static Checked<GroupBoard> make(transport::Exchange& exchange);
  GroupBoard(GroupBoard&& other) noexcept;
  GroupBoard& operator=(GroupBoard&& other) = delete;
  ~GroupBoard();

  // Registers an executable, which all ranks make in the same order; returns its number.
  [[nodiscard]] std::uint32_t add(std::string program);

  // Publishes that this rank begins its next execution, of that executable. If two ranks begin at
  // the same time, at least one of them sees the other's entry. `places`: a number for whatever
  // else must be equal on all ranks.
  void begin(std::uint32_t executable, std::uint64_t places = 0);
  void step();  // counts one step of the execution
  void end();   // all steps are done: other ranks need nothing more from it
  // This rank has given up: in its first execution that differs on another rank, else in its last.
  // Requires: an execution.
  void stop();
  void clear();

  [[nodiscard]] int ranks() const { return static_cast<int>(processes_.size()); }
  // The first of this rank's last `turns` executions, at most kHistory, that differs on another
  // rank (I311, which names both).
  [[nodiscard]] std::optional<Diag> find_mismatch(std::uint32_t turns = 1) const;
  // Whether another rank has given up in an execution that this rank has begun. A CPU rank that
  // gives up in a later one has done its part of this one.
  [[nodiscard]] bool has_stopped() const;
  // Increases as other ranks take steps.
  [[nodiscard]] std::uint64_t steps_of_others() const;
  // A rank whose process has exited during this rank's execution without having given up.
  [[nodiscard]] std::optional<int> find_gone() const;

 private:
  struct Words;
  struct Turn;
  struct Difference;
  GroupBoard(Segments pages, int rank) : pages_(std::move(pages)), rank_(rank) {}
  [[nodiscard]] Checked<Ok> check_near(const std::vector<transport::Blob>& cards) const;
  void watch(const std::vector<transport::Blob>& cards);
  [[nodiscard]] Words& words(int rank) const;
  // None: the rank has not begun this turn, or its entry has been overwritten.
  [[nodiscard]] std::optional<Turn> find_turn(int rank, std::uint32_t turn) const;
  // The first of this rank's last `turns` executions that differs on another rank.
  [[nodiscard]] std::optional<Difference> find_difference(std::uint32_t turns) const;
  [[nodiscard]] Diag describe(const Difference& found) const;

  Segments pages_;
  int rank_;
  std::uint32_t turn_ = 0;                     // executions begun
  std::vector<std::string> executables_ = {};  // by number: programs' names
  std::vector<int> processes_ = {};  // by rank: a pidfd that polls readable on exit, or -1
};

}  // namespace harpe
