#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/machine.h"

namespace harpe {

// Computes the figures of a machine from samples. Pure, and the same for every kind of machine.

// Rounded to four digits, because further digits are noise.
[[nodiscard]] double rounded(double value);
// The same for a rate or bandwidth, in the unit that is printed.
[[nodiscard]] double rounded_in(double unit, double value);
// At least a picosecond.
[[nodiscard]] Picoseconds rounded_time(double seconds);

inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;

// start + bytes / bandwidth.
struct CopyRate {
  double start = 0;      // seconds
  double bandwidth = 0;  // bytes per second
};
// The line through (bytes, seconds) with the least squared relative error. Requires: two points
// that differ in bytes.
[[nodiscard]] CopyRate fit_line(std::span<const std::pair<double, double>> points);

// The values that are tried for the figures of a rate line. The best fit to its samples is chosen.
struct RateGrid {
  std::vector<double> tile_rows = {1};
  std::vector<double> tile_columns = {1};
  std::vector<double> half_depths = {0, 4, 8, 16, 32, 64, 128, 256};
  std::vector<double> starts = {0.1, 0.2, 0.5, 1, 2, 4, 8, 16};  // microseconds
};

// The line for a leaf and type, fitted to its samples in the machine; causal samples affect only
// the peak. The peak is that of the fastest sample, so that the bound holds. Requires: the
// machine's processor; `like` is one of the samples.
[[nodiscard]] LeafRate fit_rate(const Machine& machine, const LeafSample& like,
                                const RateGrid& grid, double memory_share);

// The slowest of the leaf's lines, for types without a line of their own; its note is `why`.
// Requires: a line of the leaf.
[[nodiscard]] LeafRate stand_in(const Machine& machine, std::string_view leaf,
                                std::string_view why);

}  // namespace harpe
