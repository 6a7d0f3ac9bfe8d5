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

// Who has what is later.
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
    : pages_((strands + kStrands - 1) / kStrands), account_(&account) {}

std::int32_t Clock::at(std::size_t strand) const {
  const PagePointer& page = pages_[strand / kStrands];
  return page ? (*page)[strand % kStrands] : -1;
}

// What others share is copied before it is changed.
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
  own_page(pages_[strand / kStrands])[strand % kStrands] = position;
}

void Clock::join(const Clock& other) {
  for (std::size_t i = 0; i < pages_.size(); ++i) join(pages_[i], other.pages_[i]);
}

void Clock::join(PagePointer& own, const PagePointer& other) {
  if (own == other || !other) return;
  const unsigned later = own ? compare(own->data(), other->data(), kStrands) : kOther;
  if (later == (kOwn | kOther)) {
    raise(own_page(own).data(), other->data(), kStrands);
  } else if (later != kOwn) {
    own = other;
  }
}

}  // namespace harpe
