#pragma once

#include <cstdint>

namespace harpe {

// The keys that a query sees by position: key k is visible to query q iff k < prefix, or low <= k -
// q <= high.
struct Visibility {
  static constexpr std::int64_t kUnbounded = std::int64_t{1} << 60;  // beyond any position
  std::int64_t low = -kUnbounded;
  std::int64_t high = kUnbounded;
  std::int64_t prefix = 0;
  friend bool operator==(const Visibility&, const Visibility&) = default;
};

// The same rule for positions relative to `query` and `key`.
[[nodiscard]] constexpr Visibility seen_from(Visibility visible, std::int64_t query,
                                             std::int64_t key) {
  return {.low = visible.low + query - key,
          .high = visible.high + query - key,
          .prefix = visible.prefix - key};
}

}  // namespace harpe
