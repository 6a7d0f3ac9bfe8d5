#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "support/rng.h"

namespace harpe::bench {

// A reproducible stream of random numbers.
class Draw {
 public:
  explicit Draw(std::uint64_t key) : key_(mix_bits(key + kStreamStep)) {}

  [[nodiscard]] std::uint64_t bits() { return mix_bits(key_ + ++drawn_ * kStreamStep); }
  // In [0, count); count > 0.
  [[nodiscard]] std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(count));
  }
  // In [low, high].
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + below(high - low + 1);
  }
  [[nodiscard]] bool coin() { return (bits() & 1) != 0; }
  template <class T>
  [[nodiscard]] const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1],
                values[static_cast<std::size_t>(below(static_cast<std::int64_t>(left)))]);
    }
  }
  // 0 .. count - 1 in random order.
  [[nodiscard]] std::vector<int> order(std::size_t count) {
    std::vector<int> indices(count);
    std::iota(indices.begin(), indices.end(), 0);
    shuffle(indices);
    return indices;
  }

 private:
  std::uint64_t key_;
  std::uint64_t drawn_ = 0;
};

}  // namespace harpe::bench
