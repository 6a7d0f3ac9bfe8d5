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

// Operands of one action side by side with poison around them; the same places in the host's memory
// and in a GPU's.
class Arena {
 public:
  explicit Arena(unsigned seed) : random_(seed) {}

  // Room for so many numbers, somewhere behind what there is, drawn from -1 to 1. Results differ by
  // no more than `bound` between who computes, and 0 means not by one bit. `shift` elements off a
  // multiple of 256 bytes. Returns where it begins, in bytes.
  std::int64_t add(DType dtype, std::int64_t elements, double bound = 0, std::int64_t shift = 0);

  [[nodiscard]] std::mt19937& random() { return random_; }
  [[nodiscard]] std::int64_t draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  // What `found` has that `expected` has not, in words; empty where all is well.
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

// An action whose operands lie from `base` on.
using MakeAction = std::function<actions::Action(std::byte* base)>;

}  // namespace harpe::testing_support
