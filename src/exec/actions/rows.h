#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/dtype.h"

namespace harpe::actions {

// The address `elements` elements behind `data`.
template <class Byte>
[[nodiscard]] Byte* element_at(Byte* data, std::int64_t elements, DType dtype) {
  return data + elements * size_in_bytes(dtype);
}

// A walk over equal boxes of several operands in memory, row by row. Loops of length one are
// dropped, and adjacent loops that are contiguous in every operand are merged, so rows are as long
// as possible.
class Rows {
 public:
  // `strides[operand][axis]` in elements. The first operand's strides determine the order of the
  // walk.
  Rows(std::span<const std::int64_t> lengths, std::span<const std::vector<std::int64_t>> strides);
  Rows() = default;

  // Elements of a row; in every operand they are contiguous.
  [[nodiscard]] std::int64_t length() const { return length_; }
  [[nodiscard]] std::int64_t count() const;
  // The loops around a row, outermost first, and an operand's step in each, in elements.
  [[nodiscard]] const std::vector<std::int64_t>& loops() const { return lengths_; }
  [[nodiscard]] const std::vector<std::int64_t>& strides(std::size_t operand) const {
    return strides_[operand];
  }

  // Calls `body(walk)` once per row; `walk.offset(i)` is where operand i's row begins, in elements.
  template <class Body>
  void for_each(const Body& body) const {
    if (empty_) return;
    for (Walk walk(*this); !walk.done; walk.advance()) body(walk);
  }

 private:
  static constexpr std::size_t kMaxLoops = 16;

  struct Walk {
    explicit Walk(const Rows& r) : rows(r) {}
    void advance();
    [[nodiscard]] std::int64_t offset(std::size_t operand) const;

    const Rows& rows;
    std::array<std::int64_t, kMaxLoops> at{};
    bool done = false;
  };

  bool empty_ = false;
  std::int64_t length_ = 1;
  std::vector<std::int64_t> lengths_;               // of the loops around a row, outermost first
  std::vector<std::vector<std::int64_t>> strides_;  // [operand][loop]
};

}  // namespace harpe::actions
