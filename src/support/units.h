#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace harpe {

// Integer arithmetic that saturates at the ends of 64 bits instead of wrapping: a sum that is too
// large stays the largest value, so that more never becomes less.
[[nodiscard]] constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}
[[nodiscard]] constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max()
                            : std::numeric_limits<std::int64_t>::min();
}
// Rounds towards zero. NaN (0 / 0, a difference of infinities) counts as too large.
[[nodiscard]] constexpr std::int64_t saturating_cast(double value) {
  constexpr double kEnd = 0x1p63;
  if (value <= -kEnd) return std::numeric_limits<std::int64_t>::min();
  if (!(value < kEnd)) return std::numeric_limits<std::int64_t>::max();  // true of a NaN
  return static_cast<std::int64_t>(value);
}

// Time in integer picoseconds, so that equal inputs give equal sums. It holds 106 days; longer
// times are `longest`, also in sums.
struct Picoseconds {
  std::int64_t value = 0;

  constexpr Picoseconds() = default;
  constexpr explicit Picoseconds(std::int64_t v) : value(v) {}
  [[nodiscard]] static constexpr Picoseconds longest() {
    return Picoseconds(std::numeric_limits<std::int64_t>::max());
  }
  [[nodiscard]] constexpr double microseconds() const { return static_cast<double>(value) / 1e6; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(value) / 1e12; }
  // times / of, rounded to the nearest; `longest` stays `longest`.
  [[nodiscard]] constexpr Picoseconds scaled(double times, double of = 1) const;

  friend constexpr auto operator<=>(const Picoseconds&, const Picoseconds&) = default;
  friend constexpr Picoseconds operator+(Picoseconds a, Picoseconds b) {
    return Picoseconds(saturating_add(a.value, b.value));
  }
  friend constexpr Picoseconds operator-(Picoseconds a, Picoseconds b) {
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(a.value, b.value, &difference)) return Picoseconds(difference);
    return a.value < 0 ? Picoseconds(std::numeric_limits<std::int64_t>::min()) : longest();
  }
  constexpr Picoseconds& operator+=(Picoseconds other) { return *this = *this + other; }
};

// Rounded to the nearest; longer times, infinity and NaN become `longest`.
[[nodiscard]] constexpr Picoseconds from_seconds(double seconds) {
  return Picoseconds(saturating_cast(seconds * 1e12 + (seconds < 0 ? -0.5 : 0.5)));
}
constexpr Picoseconds Picoseconds::scaled(double times, double of) const {
  return *this == longest() ? *this : from_seconds(seconds() * times / of);
}
[[nodiscard]] constexpr Picoseconds from_microseconds(double us) { return from_seconds(us * 1e-6); }

}  // namespace harpe
