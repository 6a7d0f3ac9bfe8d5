#include "lower/clock.h"

#include <algorithm>
#include <utility>

#include "support/multiversion.h"

namespace harpe {
namespace {

template <class T>
struct CountingAllocator {
  using value_type = T;

  explicit CountingAllocator(Clock::Account& counted) : account(&counted) {}
  template <class Other>
  explicit(false) CountingAllocator(const CountingAllocator<Other>& other)
      : account(other.account) {}

  T* allocate(std::size_t count) {
    *account += static_cast<std::int64_t>(count * sizeof(T));
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* items, std::size_t count) {
    *account -= static_cast<std::int64_t>(count * sizeof(T));
    std::allocator<T>().deallocate(items, count);
  }
  friend bool operator==(const CountingAllocator&, const CountingAllocator&) = default;

  Clock::Account* account;
};

// Which side has some later position.
constexpr unsigned kOwn = 1;
constexpr unsigned kOther = 2;

HP_CLONES unsigned compare(const std::int32_t* own, const std::int32_t* other, std::size_t count) {
  std::int32_t own_later = 0;
  std::int32_t other_later = 0;
  for (std::size_t i = 0; i < count; ++i) {
    own_later |= static_cast<std::int32_t>(own[i] > other[i]);
    other_later |= static_cast<std::int32_t>(own[i] < other[i]);
  }
  return (own_later != 0 ? kOwn : 0) | (other_later != 0 ? kOther : 0);
}

HP_CLONES void raise(std::int32_t* own, const std::int32_t* other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) own[i] = std::max(own[i], other[i]);
}

}  // namespace

Clock::Clock(std::size_t strands, Account& account)
    : branches_((strands + kStrands * kPages - 1) / (kStrands * kPages)), account_(&account) {}

std::int32_t Clock::at(std::size_t strand) const {
  const BranchPointer& branch = branches_[strand / (kStrands * kPages)];
  if (!branch) return -1;
  const PagePointer& page = (*branch)[strand / kStrands % kPages];
  return page ? (*page)[strand % kStrands] : -1;
}

// Copies a shared branch before it is modified.
Clock::Branch& Clock::own_branch(BranchPointer& branch) {
  if (branch && branch.use_count() == 1) return *branch;
  auto own = std::allocate_shared<Branch>(CountingAllocator<Branch>(*account_));
  if (branch) *own = *branch;
  branch = std::move(own);
  return *branch;
}

Clock::Page& Clock::own_page(PagePointer& page) {
  if (page && page.use_count() == 1) return *page;
  auto own = std::allocate_shared<Page>(CountingAllocator<Page>(*account_));
  if (page) {
    *own = *page;
  } else {
    own->fill(-1);
  }
  page = std::move(own);
  return *page;
}

void Clock::set(std::size_t strand, std::int32_t position) {
  if (at(strand) == position) return;
  Branch& branch = own_branch(branches_[strand / (kStrands * kPages)]);
  own_page(branch[strand / kStrands % kPages])[strand % kStrands] = position;
}

void Clock::join(const Clock& other) {
  for (std::size_t i = 0; i < branches_.size(); ++i) join(branches_[i], other.branches_[i]);
}

void Clock::join(BranchPointer& own, const BranchPointer& other) {
  if (own == other || !other) return;
  if (!own) {
    own = other;
    return;
  }
  bool is_other = true;  // the join so far equals `other`
  for (std::size_t i = 0; i < kPages; ++i) {
    const PagePointer& theirs = (*other)[i];
    PagePointer page = joined((*own)[i], theirs);
    is_other = is_other && page == theirs;
    if (page != (*own)[i]) own_branch(own)[i] = std::move(page);
  }
  if (is_other) own = other;
}

Clock::PagePointer Clock::joined(const PagePointer& own, const PagePointer& other) {
  if (own == other || !other) return own;
  if (!own) return other;
  const unsigned later = compare(own->data(), other->data(), kStrands);
  if (later == kOwn) return own;
  if (later != (kOwn | kOther)) return other;
  PagePointer both = own;
  raise(own_page(both).data(), other->data(), kStrands);
  return both;
}

}  // namespace harpe
