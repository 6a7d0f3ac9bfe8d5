#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace harpe {

// A vector clock: per strand the position of its last task known to be over, or -1. A tree of
// shared pages: clocks share pages with equal values, so the memory of many clocks, and the time to
// copy and join them, depends only on their differences.
class Clock {
 public:
  // Total bytes of the pages of all clocks that use it; must outlive them.
  using Account = std::int64_t;

  Clock() = default;
  Clock(std::size_t strands, Account& account);

  [[nodiscard]] std::int32_t at(std::size_t strand) const;
  void set(std::size_t strand, std::int32_t position);
  // Takes the later position per strand.
  void join(const Clock& other);

 private:
  static constexpr std::size_t kStrands = 128;  // per page
  static constexpr std::size_t kPages = 32;     // per branch
  using Page = std::array<std::int32_t, kStrands>;
  using PagePointer = std::shared_ptr<Page>;  // null: -1 throughout
  using Branch = std::array<PagePointer, kPages>;
  using BranchPointer = std::shared_ptr<Branch>;  // null: -1 throughout

  void join(BranchPointer& own, const BranchPointer& other);
  [[nodiscard]] PagePointer joined(const PagePointer& own, const PagePointer& other);
  [[nodiscard]] Branch& own_branch(BranchPointer& branch);
  [[nodiscard]] Page& own_page(PagePointer& page);

  std::vector<BranchPointer> branches_;
  Account* account_ = nullptr;
};

}  // namespace harpe
