#pragma once

#include <compare>
#include <cstdint>

namespace harpe {

// Time as the simulator counts it: integer picoseconds, so that equal inputs give equal sums. Holds
// 106 days.
struct Picoseconds {
  std::int64_t value = 0;

  constexpr Picoseconds() = default;
  constexpr explicit Picoseconds(std::int64_t v) : value(v) {}
  [[nodiscard]] constexpr double microseconds() const { return static_cast<double>(value) / 1e6; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(value) / 1e12; }

  friend constexpr auto operator<=>(const Picoseconds&, const Picoseconds&) = default;
  friend constexpr Picoseconds operator+(Picoseconds a, Picoseconds b) {
    return Picoseconds(a.value + b.value);
  }
  friend constexpr Picoseconds operator-(Picoseconds a, Picoseconds b) {
    return Picoseconds(a.value - b.value);
  }
  constexpr Picoseconds& operator+=(Picoseconds other) {
    value += other.value;
    return *this;
  }
};

// Rounded to the nearest. Requires: finite, and within 106 days.
[[nodiscard]] constexpr Picoseconds from_seconds(double seconds) {
  return Picoseconds(static_cast<std::int64_t>(seconds * 1e12 + (seconds < 0 ? -0.5 : 0.5)));
}
[[nodiscard]] constexpr Picoseconds from_microseconds(double us) { return from_seconds(us * 1e-6); }

}  // namespace harpe
