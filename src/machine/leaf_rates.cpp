#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "machine/rates.h"
#include "support/check.h"

namespace harpe {
namespace {

// The ratio of the work in whole tiles and whole waves of SMs to the work of the shape.
double waste(const LeafRate& rate, const Processor& processor, const LeafShape& shape) {
  const auto sms = static_cast<double>(processor.sms);
  const double rows = std::ceil(shape.rows / rate.tile_rows);
  const double padding = rows * rate.tile_rows / shape.rows;
  if (rate.tile_columns == 0) {
    // Columns are a loop, which a kernel splits if there are fewer tiles than SMs.
    const double tiles = shape.batch * rows;
    return tiles < sms ? padding : padding * std::ceil(tiles / sms) * sms / tiles;
  }
  const double columns = std::ceil(shape.columns / rate.tile_columns);
  const double tiles = shape.batch * rows * columns;
  // If half of the SMs would idle, several SMs share the depth of a tile. Adding up their parts
  // costs half of the gain, on a logarithmic scale.
  const double waves = 2 * tiles < sms ? std::sqrt(2 * tiles / sms) : std::ceil(tiles / sms);
  return padding * (columns * rate.tile_columns / shape.columns) * waves * sms / tiles;
}

// In seconds, before samples correct it.
double modelled(const LeafRate& rate, const Processor& processor, const LeafShape& shape) {
  const bool is_few = has_few_rows(rate, shape);
  const Picoseconds start = is_few && rate.few_start > Picoseconds{} ? rate.few_start : rate.start;
  double compute = 0;
  if (rate.peak > 0) {
    const double work =
        is_few ? shape.flops
               : shape.flops * waste(rate, processor, shape) * (1 + rate.half_depth / shape.depth);
    compute = work / rate.peak;
  }
  const double share = shape.bytes <= processor.cache_bytes ? 1 : rate.memory_share;
  const double memory = shape.bytes / (processor.memory_bandwidth * share);
  return start.seconds() + std::max(compute, memory);
}

double distance(const LeafShape& first, const LeafShape& second) {
  const std::array ratios = {first.batch / second.batch, first.rows / second.rows,
                             first.columns / second.columns, first.depth / second.depth};
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio) * std::log(ratio);
  return std::sqrt(sum);
}

bool is_within(const LeafShape& inner, const LeafShape& outer) {
  return inner.batch <= outer.batch && inner.rows <= outer.rows && inner.columns <= outer.columns &&
         inner.depth <= outer.depth && inner.flops <= outer.flops && inner.bytes <= outer.bytes;
}

// A GEMM of more rows than a tile has takes as long as one of whole tiles.
LeafShape in_whole_tiles(const LeafRate& rate, LeafShape shape) {
  if (rate.tile_columns == 0 || shape.rows <= rate.tile_rows) return shape;
  const double rows = std::ceil(shape.rows / rate.tile_rows) * rate.tile_rows;
  shape.flops *= rows / shape.rows;
  shape.rows = rows;
  return shape;
}

// The nearest samples that differ from a shape only in fewer or more rows.
struct RowNeighbours {
  const LeafSample* fewer = nullptr;
  const LeafSample* more = nullptr;

  void note(const LeafSample& sample, const LeafShape& shape) {
    const LeafShape& other = sample.shape;
    if (other.batch != shape.batch || other.columns != shape.columns || other.depth != shape.depth)
      return;
    const bool is_fewer = other.rows < shape.rows;
    const LeafSample*& best = is_fewer ? fewer : more;
    const bool is_nearer = best == nullptr || (best->shape.rows < other.rows) == is_fewer;
    if (is_nearer) best = &sample;
  }

  // True if there are both samples, and the one with more rows has at most twice the rows of the
  // other. The time then lies between the times of the two samples.
  [[nodiscard]] bool are_near() const {
    constexpr double kNear = 2;
    return fewer != nullptr && more != nullptr && more->shape.rows <= kNear * fewer->shape.rows;
  }

  // Linear interpolation over the logarithm of rows.
  [[nodiscard]] std::optional<double> seconds_at(double rows) const {
    if (fewer == nullptr || more == nullptr) return std::nullopt;
    const double way =
        std::log(rows / fewer->shape.rows) / std::log(more->shape.rows / fewer->shape.rows);
    return fewer->time.seconds() + way * (more->time - fewer->time).seconds();
  }
};

// The time by samples of the same kernel, of few rows or of many: between those that differ only in
// rows, if they are near, of GEMMs by either kernel, since neither is much slower where they meet.
// Else samples correct the modelled time by their own ratio to the model,
// weighted by the inverse square of their distance. The model itself has weight 1, as a sample a
// factor of e away. The time is then clamped between samples of smaller and of larger shapes.
double corrected(const Machine& machine, const LeafRate& rate, const LeafShape& shape,
                 std::string_view leaf, std::string_view dtype, bool causal, Supplier by) {
  const double model = modelled(rate, machine.processor, shape);
  const LeafSample* same = nullptr;  // the supplier's own sample before one of any supplier
  RowNeighbours neighbours;
  double logarithms = 0;
  double weights = 1;
  double least = 0;
  double most = HUGE_VAL;
  for (const LeafSample& sample : machine.samples) {
    if (sample.leaf != leaf || sample.dtype != dtype || sample.causal != causal) continue;
    if (sample.by != by && sample.by != Supplier::Any) continue;
    const bool is_alike = has_few_rows(rate, sample.shape) == has_few_rows(rate, shape);
    if (is_alike || rate.tile_columns > 0) neighbours.note(sample, shape);
    if (!is_alike) continue;
    const double time = sample.time.seconds();
    if (sample.shape == shape && (same == nullptr || sample.by == by)) same = &sample;
    if (is_within(sample.shape, shape)) least = std::max(least, time);
    if (is_within(shape, sample.shape)) most = std::min(most, time);
    constexpr double kNear = 1e-6;  // the same shape except for its bytes or masks
    const double apart = std::max(kNear, distance(shape, sample.shape));
    const double weight = 1 / (apart * apart);
    logarithms += weight * std::log(time / modelled(rate, machine.processor, sample.shape));
    weights += weight;
  }
  if (same != nullptr) return same->time.seconds();
  if (neighbours.are_near()) return *neighbours.seconds_at(shape.rows);
  const double between = model * std::exp(logarithms / weights);
  if (least <= most) return std::clamp(between, least, most);
  // A kernel may be so slow on few rows that more rows take less time: then neither sample is a
  // limit.
  return neighbours.seconds_at(shape.rows).value_or(between);
}

}  // namespace

bool has_few_rows(const LeafRate& rate, const LeafShape& shape) {
  return (shape.batch == 1 || rate.tile_columns == 0) && shape.rows <= rate.few_rows;
}

const LeafRate& find_rate(const Machine& machine, std::string_view leaf, std::string_view dtype,
                          Supplier by) {
  constexpr std::string_view kAll = "*";
  const LeafRate* best = nullptr;
  int best_rank = -1;
  for (const LeafRate& rate : machine.rates) {
    const bool of_leaf = rate.leaf == leaf;
    const bool of_dtype = rate.dtype == dtype;
    if ((!of_leaf && rate.leaf != kAll) || (!of_dtype && rate.dtype != kAll)) continue;
    if (rate.by != by && rate.by != Supplier::Any) continue;
    const int rank = (of_leaf ? 4 : 0) + (of_dtype ? 2 : 0) + (rate.by == by ? 1 : 0);
    if (rank > best_rank) best = &rate;
    best_rank = std::max(best_rank, rank);
  }
  HP_CHECK(best != nullptr, "machine `" + machine.name + "` has no rate for all leaves");
  return *best;
}

Picoseconds leaf_time(const Machine& machine, std::string_view leaf, std::string_view dtype,
                      const LeafShape& shape, bool causal, Supplier by) {
  const LeafRate& rate = find_rate(machine, leaf, dtype, by);
  const double seconds =
      corrected(machine, rate, in_whole_tiles(rate, shape), leaf, dtype, causal, by);
  return std::max({Picoseconds(1), leaf_bound(machine, leaf, dtype, shape.flops, shape.bytes, by),
                   from_seconds(seconds)});
}

double leaf_waves(const Machine& machine, std::string_view leaf, std::string_view dtype,
                  const LeafShape& shape, std::int64_t sms) {
  const LeafRate& rate = find_rate(machine, leaf, dtype);
  double tiles =
      shape.batch * std::ceil(shape.rows / (rate.held_rows > 0 ? rate.held_rows : rate.tile_rows));
  if (rate.tile_columns > 0) tiles *= std::ceil(shape.columns / rate.tile_columns);
  return std::max(1.0, std::ceil(tiles / static_cast<double>(sms)));
}

Picoseconds leaf_bound(const Machine& machine, std::string_view leaf, std::string_view dtype,
                       double flops, double bytes, Supplier by) {
  const LeafRate& rate = find_rate(machine, leaf, dtype, by);
  const double compute = rate.peak > 0 ? flops / rate.peak : 0;
  const double seconds = std::max(compute, bytes / machine.processor.memory_bandwidth);
  // Rounded down, so that it is a bound however the time is rounded.
  return Picoseconds(saturating_cast(seconds * 1e12));
}

}  // namespace harpe
