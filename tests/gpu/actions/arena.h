#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "exec/actions/action.h"
#include "ir/dtype.h"

namespace harpe::testing_support {

// Operands of one action, side by side with poison around them, at the same offsets in host memory
// and in a GPU's memory.
class Arena {
 public:
  explicit Arena(unsigned seed) : random_(seed) {}

  // Appends `elements` numbers drawn from -1 to 1. Host and GPU may differ in them by `bound`,
  // relative for values above 1; 0 requires equal bits. The region begins `shift` elements off a
  // multiple of 256 bytes. Returns its offset in bytes.
  std::int64_t add(DType dtype, std::int64_t elements, double bound = 0, std::int64_t shift = 0);

  [[nodiscard]] std::mt19937& random() { return random_; }
  [[nodiscard]] std::int64_t draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  // The first difference between the two as text; empty if there is none.
  [[nodiscard]] std::string compare(const std::vector<std::byte>& expected,
                                    const std::vector<std::byte>& found) const;

 private:
  struct Region {
    std::int64_t begin;
    std::int64_t elements;
    DType dtype;
    double bound;
  };
  std::mt19937 random_;
  std::vector<std::byte> bytes_;
  std::vector<Region> regions_;
};

// Makes an action with its operands at `base`.
using MakeAction = std::function<actions::Action(std::byte* base)>;

}  // namespace harpe::testing_support
