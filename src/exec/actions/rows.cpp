#include "exec/actions/rows.h"

#include <algorithm>
#include <numeric>

#include "support/check.h"

namespace harpe::actions {
namespace {

// The axes with length other than one, by descending stride of the first operand.
std::vector<std::size_t> walk_order(std::span<const std::int64_t> lengths,
                                    std::span<const std::vector<std::int64_t>> strides) {
  std::vector<std::size_t> order;
  for (std::size_t axis = 0; axis < lengths.size(); ++axis) {
    if (lengths[axis] != 1) order.push_back(axis);
  }
  std::ranges::sort(order, {}, [&](std::size_t axis) {
    return std::pair(-strides[0][axis], axis);  // equal strides stay in order
  });
  return order;
}

}  // namespace

Rows::Rows(std::span<const std::int64_t> lengths,
           std::span<const std::vector<std::int64_t>> strides)
    : strides_(strides.size()) {
  empty_ = std::ranges::any_of(lengths, [](std::int64_t length) { return length <= 0; });
  for (const std::size_t axis : walk_order(lengths, strides)) {
    // The previous loop merges with this one if its step is a whole turn of this one.
    bool continues = !lengths_.empty();
    for (std::size_t i = 0; continues && i < strides.size(); ++i) {
      continues = strides_[i].back() == strides[i][axis] * lengths[axis];
    }
    if (continues) {
      lengths_.back() *= lengths[axis];
    } else {
      lengths_.push_back(lengths[axis]);
    }
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (continues) strides_[i].pop_back();
      strides_[i].push_back(strides[i][axis]);
    }
  }
  const bool dense = !lengths_.empty() &&
                     std::ranges::all_of(strides_, [](const auto& s) { return s.back() == 1; });
  if (dense) {
    length_ = lengths_.back();
    lengths_.pop_back();
    for (std::vector<std::int64_t>& s : strides_) s.pop_back();
  }
  HP_CHECK(lengths_.size() <= kMaxLoops, "a slot has at most 17 separate loops");
}

std::int64_t Rows::count() const {
  return empty_ ? 0
                : std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{1},
                                  std::multiplies<>());
}

void Rows::Walk::advance() {
  for (std::size_t loop = rows.lengths_.size(); loop-- > 0;) {
    if (++at[loop] < rows.lengths_[loop]) return;
    at[loop] = 0;
  }
  done = true;
}

std::int64_t Rows::Walk::offset(std::size_t operand) const {
  const std::vector<std::int64_t>& strides = rows.strides_[operand];
  std::int64_t offset = 0;
  for (std::size_t loop = 0; loop < strides.size(); ++loop) offset += at[loop] * strides[loop];
  return offset;
}

}  // namespace harpe::actions
