#include "ir/interpret_sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ir/interpret_math.h"
#include "leaves/leaf.h"
#include "support/check.h"

namespace harpe {
namespace {

// The largest row norms of a tensor.
Measure largest_norms(const NamedTensor& tensor) {
  Measure largest;
  const std::int64_t length = tensor.tensor->shape.empty() ? 1 : tensor.tensor->shape.back();
  const std::int64_t elements = element_count(*tensor.tensor);
  std::vector<std::int64_t> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  const double root = std::sqrt(static_cast<double>(length));
  for (std::int64_t row = 0; row < elements; row += length) {
    const Measure measure = measure_row(tensor, row, places);
    largest.size = std::max(largest.size, root * measure.size);
    largest.factor = std::max(largest.factor, root * measure.factor);
  }
  return largest;
}

}  // namespace

double size_at(const NamedTensor& tensor, std::int64_t place) {
  const double x = std::abs(load(*tensor.tensor, place));
  if (tensor.scales == nullptr) return x;
  const double scale = tensor.scales[place];
  return scale > x ? scale : x;  // false for NaN
}

double factor_at(const NamedTensor& tensor, std::int64_t place) {
  const double x = std::abs(load(*tensor.tensor, place));
  if (tensor.scales == nullptr) return x;
  const double off = tensor.error * tensor.scales[place];
  return off > x ? off : x;
}

double Squares::root(double count) const {
  return static_cast<double>(std::sqrt(sum_ / static_cast<long double>(count)));
}

Measure measure_row(const NamedTensor& tensor, std::int64_t base,
                    std::span<const std::int64_t> places) {
  const auto count = std::max(1.0, static_cast<double>(places.size()));
  Squares sizes;
  if (tensor.scales == nullptr) {
    constexpr std::array<std::int64_t, 1> kHere{0};
    std::vector<double> values(places.size());
    gather({.tensor = tensor.tensor, .base = base, .rows = kHere, .columns = places}, values.data(),
           0);
    for (const double x : values) sizes.add(x);
    return {.size = sizes.root(count), .factor = sizes.root(count)};
  }
  Squares factors;
  for (const std::int64_t place : places) {
    sizes.add(size_at(tensor, base + place));
    factors.add(factor_at(tensor, base + place));
  }
  return {.size = sizes.root(count), .factor = factors.root(count)};
}

double least_root(const LeafCall& call) {
  const HostTensor& squares = *call.operands[1].tensor;
  double least = std::numeric_limits<double>::infinity();
  const std::int64_t elements = element_count(squares);
  for (std::int64_t i = 0; i < elements; ++i) least = std::min(least, load(squares, i));
  const double length = attribute_of(*call.stmt, "length", 1);
  return std::sqrt(std::max(least, 0.0) / length + attribute_of(*call.stmt, "eps", 1e-6));
}

ScoreSizes measure_scores(const LeafCall& call) {
  const Stmt& stmt = *call.stmt;
  const LeafContract* const leaf = find_leaf_contract(stmt.leaf);
  HP_CHECK(leaf != nullptr && leaf->has_scores(), "`" + stmt.leaf + "` has scores");
  const HostTensor& query = *call.operands[0].tensor;
  const double features = query.shape.empty() ? 1 : static_cast<double>(query.shape.back());
  const double scale = std::abs(attribute_of(stmt, "scale", 1 / std::sqrt(features)));
  const Measure q = largest_norms(call.operands[0]);
  const Measure k = largest_norms(call.operands[1]);
  const bool own = leaf->sums == LeafContract::kOwnSums;
  const NamedTensor& sums =
      own ? call.targets[1] : call.operands[static_cast<std::size_t>(leaf->sums)];
  return {.score = std::max(1.0, scale * std::max(q.size * k.factor, q.factor * k.size)),
          .logsum = std::max(1.0, largest_magnitude(*sums.tensor))};
}

}  // namespace harpe
