#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/cpu/segments.h"

namespace harpe::cpu {

// What each rank of a group shows the others on this host while it executes.
class GroupBoard {
 public:
  // Collective. Errors: Segments::make's; N017 a rank is on another host.
  [[nodiscard]] static Checked<GroupBoard> make(transport::Exchange& exchange);
  GroupBoard(GroupBoard&& other) noexcept;
  GroupBoard& operator=(GroupBoard&& other) = delete;
  ~GroupBoard();

  // This rank begins its `turn`-th execution, of the group's executable of that number.
  void begin(std::uint32_t turn, std::uint32_t executable);
  void step();  // ... has taken a step of it
  void end();   // ... has taken all: others need nothing of it any more
  void stop();  // ... has given up
  void clear();

  struct Shown {
    std::uint32_t turn = 0;
    std::uint32_t executable = 0;
    bool has_stopped = false;
  };
  [[nodiscard]] Shown of(int rank) const;
  [[nodiscard]] int ranks() const { return static_cast<int>(processes_.size()); }
  // Grows as others take steps.
  [[nodiscard]] std::uint64_t steps_of_others() const;
  // A rank whose process has ended in the middle of this rank's execution, and not because it had
  // given up.
  [[nodiscard]] std::optional<int> find_gone() const;

 private:
  struct Words;
  GroupBoard(Segments pages, int rank) : pages_(std::move(pages)), rank_(rank) {}
  [[nodiscard]] Checked<Ok> check_near(const std::vector<transport::Blob>& cards) const;
  void watch(const std::vector<transport::Blob>& cards);
  [[nodiscard]] Words& words(int rank) const;
  [[nodiscard]] std::uint32_t turn() const;  // of this rank

  Segments pages_;
  int rank_;
  std::vector<int> processes_ = {};  // by rank: a descriptor that says when it ends, or -1
};

}  // namespace harpe::cpu
