#include "profile/profile_fit.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "machine/rates.h"
#include "support/check.h"

namespace harpe {
namespace {

// The squared logarithmic error of a rate line, without sample corrections, over its samples.
double error_of(Machine& bare, const LeafRate& rate, const std::vector<LeafSample>& samples) {
  bare.rates = {rate};
  double sum = 0;
  for (const LeafSample& sample : samples) {
    const Picoseconds time = leaf_time(bare, sample.leaf, sample.dtype, sample.shape, false);
    const double error = std::log(time.seconds() / sample.time.seconds());
    sum += error * error;
  }
  return sum;
}

std::vector<LeafRate> candidates(const LeafRate& like, const RateGrid& grid) {
  std::vector<LeafRate> all;
  LeafRate rate = like;
  for (const double tile_rows : grid.tile_rows) {
    for (const double tile_columns : grid.tile_columns) {
      for (const double half_depth : grid.half_depths) {
        for (const double start : grid.starts) {
          rate.tile_rows = tile_rows;
          rate.tile_columns = tile_columns;
          rate.half_depth = half_depth;
          rate.start = from_microseconds(start);
          all.push_back(rate);
        }
      }
    }
  }
  return all;
}

}  // namespace

double rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

double rounded_in(double unit, double value) { return rounded(value / unit) * unit; }

Picoseconds rounded_time(double seconds) {
  return std::max(Picoseconds(1), from_seconds(rounded(seconds)));
}

CopyRate fit_line(std::span<const std::pair<double, double>> points) {
  // Minimises sum of (start / t + slope b / t - 1)^2: two equations in two unknowns.
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double a = 0;
  double b = 0;
  for (const auto& [bytes, seconds] : points) {
    const double u = 1 / seconds;
    const double v = bytes / seconds;
    aa += u * u;
    ab += u * v;
    bb += v * v;
    a += u;
    b += v;
  }
  const double determinant = aa * bb - ab * ab;
  const double start = std::max(0.0, (a * bb - b * ab) / determinant);
  const double slope = (b - start * ab) / bb;
  return {.start = start, .bandwidth = 1 / slope};
}

LeafRate fit_rate(const Machine& machine, const LeafSample& like, const RateGrid& grid,
                  double memory_share) {
  LeafRate rate;
  rate.memory_share = memory_share;
  rate.leaf = like.leaf;
  rate.dtype = like.dtype;
  rate.from = like.from;
  std::vector<LeafSample> own;
  for (const LeafSample& sample : machine.samples) {
    if (sample.leaf != rate.leaf || sample.dtype != rate.dtype) continue;
    if (sample.by == Supplier::Library) continue;
    rate.peak =
        std::max(rate.peak, rounded_in(kTera, 1.002 * sample.shape.flops / sample.time.seconds()));
    if (!sample.causal) own.push_back(sample);
  }
  Machine bare;
  bare.processor = machine.processor;
  LeafRate best;
  double least = HUGE_VAL;
  for (const LeafRate& candidate : candidates(rate, grid)) {
    const double error = error_of(bare, candidate, own);
    if (error >= least) continue;
    least = error;
    best = candidate;
  }
  return best;
}

LeafRate stand_in(const Machine& machine, std::string_view leaf, std::string_view why) {
  const LeafRate* slowest = nullptr;
  for (const LeafRate& rate : machine.rates) {
    if (rate.leaf != leaf) continue;
    if (slowest == nullptr || rate.peak < slowest->peak) slowest = &rate;
  }
  HP_CHECK(slowest != nullptr, "a line of `" + std::string(leaf) + "`");
  LeafRate rate = *slowest;
  rate.dtype = "*";
  rate.from = {Origin::Assumed, std::string(why)};
  return rate;
}

}  // namespace harpe
