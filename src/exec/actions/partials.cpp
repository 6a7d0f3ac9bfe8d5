#include "exec/actions/partials.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "exec/actions/tensors.h"
#include "ir/producer.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Lengths of a dense tensor's axes in memory order, opaque dimensions included, and each one's axis
// of the program (-1: opaque).
struct Shape {
  std::vector<int> axes;
  std::vector<std::int64_t> lengths;
};

Shape shape_along_axes(const Setting& setting, const BufferTable& table) {
  Shape shape;
  for (const DimTable& dim : table.dims) {
    for (const int axis : dim.axes) {
      shape.axes.push_back(axis);
      shape.lengths.push_back(setting.blocks.axes()[static_cast<std::size_t>(axis)].size);
    }
    if (!dim.axes.empty()) continue;
    shape.axes.push_back(-1);
    shape.lengths.push_back(dim.opaque);
  }
  return shape;
}

// Index in `weights` of the logsumexp of element `flat` of `values`: equal positions along every
// axis they share.
std::int64_t partner_of(const Shape& values, const Shape& weights, std::int64_t flat) {
  std::vector<std::int64_t> at(values.axes.size());
  for (std::size_t i = at.size(); i-- > 0;) {
    at[i] = flat % values.lengths[i];
    flat /= values.lengths[i];
  }
  std::int64_t partner = 0;
  for (std::size_t i = 0; i < weights.axes.size(); ++i) {
    const auto shared = std::ranges::find(values.axes, weights.axes[i]) - values.axes.begin();
    partner = partner * weights.lengths[i] + at[static_cast<std::size_t>(shared)];
  }
  return partner;
}

// log of the sum of e^x; -inf without finite x.
double combined_logarithm(const std::vector<HostTensor>& parts, std::int64_t at) {
  double largest = -kInfinity;
  for (const HostTensor& part : parts) largest = std::max(largest, load(part, at));
  if (largest == -kInfinity) return largest;
  double sum = 0;
  for (const HostTensor& part : parts) sum += std::exp(load(part, at) - largest);
  return largest + std::log(sum);
}

double combined(Monoid monoid, const std::vector<HostTensor>& parts, std::int64_t at) {
  double result = load(parts.front(), at);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const double next = load(parts[i], at);
    result = monoid == Monoid::Max ? std::max(result, next) : result + next;
  }
  return result;
}

// Normalised results, each weighted by its share of the whole sum of exponentials.
double combined_result(const std::vector<HostTensor>& parts, std::int64_t at,
                       const std::vector<HostTensor>& weights, std::int64_t partner) {
  const double whole = combined_logarithm(weights, partner);
  if (whole == -kInfinity) return 0;
  double result = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double logarithm = load(weights[i], partner);
    if (logarithm != -kInfinity) result += load(parts[i], at) * std::exp(logarithm - whole);
  }
  return result;
}

std::vector<HostTensor> parts_of(const Setting& setting, const std::string& buffer,
                                 const PartOf& part_of) {
  const std::int64_t count = setting.blocks.extent(table_of(setting, buffer).partial_axes);
  std::vector<HostTensor> parts;
  for (std::int64_t part = 0; part < count; ++part) {
    parts.push_back(part_of(buffer, part));
  }
  return parts;
}

}  // namespace

HostTensor combine_parts(const Setting& setting, const std::string& buffer, const PartOf& part_of) {
  const Producer state = producer_of(setting.plan.program, buffer);
  const std::vector<HostTensor> parts = parts_of(setting, buffer, part_of);
  HostTensor out = parts.front();
  const bool weighed = state.stmt->monoid == Monoid::Lse && state.target == 0;
  std::vector<HostTensor> weights;
  Shape values_shape;
  Shape weights_shape;
  if (weighed) {
    const std::string& logarithms = state.stmt->targets[1].buffer;
    weights = parts_of(setting, logarithms, part_of);
    values_shape = shape_along_axes(setting, table_of(setting, buffer));
    weights_shape = shape_along_axes(setting, table_of(setting, logarithms));
  }
  for (std::int64_t i = 0; i < element_count(out); ++i) {
    const double value =
        weighed ? combined_result(parts, i, weights, partner_of(values_shape, weights_shape, i))
        : state.stmt->monoid == Monoid::Lse ? combined_logarithm(parts, i)
                                            : combined(state.stmt->monoid, parts, i);
    store(out, i, value);
  }
  return out;
}

}  // namespace harpe::actions
