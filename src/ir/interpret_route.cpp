#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "ir/interpret_leaves.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"
#include "support/check.h"

namespace harpe {
namespace {

// `tensor` viewed as [major, minor, the axes `features`]: where rows begin and where elements lie.
struct Rows {
  const NamedTensor& tensor;
  std::int64_t major = 0;  // strides
  std::int64_t minor = 0;
  std::vector<std::int64_t> features;

  [[nodiscard]] std::int64_t at(std::int64_t i, std::int64_t j) const {
    return i * major + j * minor;
  }
};

std::int64_t stride_of(const NamedTensor& tensor, const std::string& axis) {
  const NamedTensor::Axis* const found = tensor.find(axis);
  return found == nullptr ? 0 : found->stride;
}

// The axes of `tensor` except those of the route's two sides.
AxisList features_of(const NamedTensor& tensor, const std::vector<std::string>& besides) {
  AxisList features;
  for (const NamedTensor::Axis& axis : tensor.axes()) {
    const bool named = std::ranges::find(besides, axis.name) != besides.end();
    if (!named) features.push_back(axis);
  }
  return features;
}

struct RouteAxes {
  std::string expert, slot, token, choice;
};

// The axes of the leaf's route, from its index operand and from the operand or target with slots.
Checked<RouteAxes> route_axes_of(const LeafCall& call, const NamedTensor& slots) {
  HP_CHECK(call.used.has_value(), "a leaf that follows a route");
  RouteAxes sides{.expert = call.used->expert, .slot = call.used->slot, .token = "", .choice = ""};
  const NamedTensor& index = call.operands[1];
  const std::vector<NamedTensor::Axis> axes = index.axes();
  if (axes.size() != 2) return misfit(call, index, "it is not [tokens, choices]");
  sides.token = axes[0].name;
  sides.choice = axes[1].name;
  for (const std::string& axis : {sides.expert, sides.slot}) {
    if (slots.find(axis) == nullptr) return misfit(call, slots, "it lacks axis `" + axis + "`");
  }
  return sides;
}

Checked<Ok> check_features(const LeafCall& call, const AxisList& features,
                           const NamedTensor& from) {
  for (const NamedTensor::Axis& axis : features) {
    const NamedTensor::Axis* const same = from.find(axis.name);
    if (same != nullptr && same->size == axis.size) continue;
    return misfit(call, from, "it has no such axis `" + axis.name + "`");
  }
  return Ok{};
}

}  // namespace

Checked<ComputedRows> interpret_topk(const LeafCall& call) {
  const NamedTensor& logits = call.operands[0];
  const NamedTensor& index = call.targets[0];
  const NamedTensor& weight = call.targets[1];
  const std::vector<NamedTensor::Axis> in = logits.axes();
  const std::vector<NamedTensor::Axis> out = index.axes();
  if (in.size() != 2 || out.size() != 2 || in[0].name != out[0].name) {
    return misfit(call, logits, "it is not [tokens, experts] beside [tokens, choices]");
  }
  if (index.tensor->shape != weight.tensor->shape) {
    return misfit(call, weight, "its shape is not that of `" + index.buffer + "`");
  }
  if (out[1].size > in[1].size) {
    return misfit(
        call, index,
        std::to_string(out[1].size) + " choices of " + std::to_string(in[1].size) + " experts");
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(in[1].size));
  for (std::int64_t token = 0; token < in[0].size; ++token) {
    const auto logit = [&](std::int64_t expert) {
      const double value = load(*logits.tensor, token * in[0].stride + expert * in[1].stride);
      return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
    };
    std::iota(order.begin(), order.end(), 0);
    const auto chosen = order.begin() + out[1].size;
    std::ranges::partial_sort(order, chosen, [&](std::int64_t a, std::int64_t b) {
      return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
    });
    double sum = 0;
    double size = 0;  // of the exponents' errors
    for (auto e = order.begin(); e != chosen; ++e) {
      sum += std::exp(logit(*e) - logit(order[0]));
      size = std::max(size, size_at(logits, token * in[0].stride + *e * in[1].stride));
    }
    for (std::int64_t k = 0; k < out[1].size; ++k) {
      const std::int64_t expert = order[static_cast<std::size_t>(k)];
      const std::int64_t at = token * out[1].size + k;
      index.values[at] = static_cast<double>(expert);
      weight.values[at] = std::exp(logit(expert) - logit(order[0])) / sum;
      if (logits.scales != nullptr) weight.scales[at] = weight.values[at] * size;
    }
  }
  return ComputedRows(2);
}

Checked<ComputedRows> interpret_limit_choices(const LeafCall& call) {
  const NamedTensor& wanted = call.operands[0];
  const NamedTensor& kept = call.targets[0];
  if (wanted.tensor->shape != kept.tensor->shape) {
    return misfit(call, kept, "its shape is not that of `" + wanted.buffer + "`");
  }
  const auto capacity = static_cast<std::int64_t>(attribute_of(*call.stmt, "capacity", 0));
  const auto experts = static_cast<std::int64_t>(attribute_of(*call.stmt, "experts", 0));
  std::map<std::int64_t, std::int64_t> taken;
  const std::int64_t choices = element_count(*wanted.tensor);
  for (std::int64_t i = 0; i < choices; ++i) {
    const auto expert = static_cast<std::int64_t>(load(*wanted.tensor, i));
    const bool known = expert >= 0 && expert < experts;
    kept.values[i] = known && taken[expert]++ < capacity ? static_cast<double>(expert) : -1;
  }
  return ComputedRows(1);
}

Checked<ComputedRows> interpret_gather_rows(const LeafCall& call) {
  const NamedTensor& target = call.targets[0];
  HP_TRY(const RouteAxes sides, route_axes_of(call, target));
  const AxisList features = features_of(target, {sides.expert, sides.slot});
  HP_REQUIRE_OK(check_features(call, features, call.operands[0]));
  const Rows from{call.operands[0], stride_of(call.operands[0], sides.token), 0,
                  offsets_in(call.operands[0], features)};
  const Rows to{target, stride_of(target, sides.expert), stride_of(target, sides.slot),
                offsets_in(target, features)};
  call.workers.for_each(std::ssize(call.routing->takers), [&](int worker, std::int64_t expert) {
    const auto& takers = call.routing->takers[static_cast<std::size_t>(expert)];
    for (std::size_t c = 0; c < takers.size() && call.workers.goes_on(worker); ++c) {
      const std::int64_t source = from.at(takers[c] / call.routing->choices, 0);
      const std::int64_t place = to.at(expert, static_cast<std::int64_t>(c));
      for (std::size_t i = 0; i < to.features.size(); ++i) {
        target.values[place + to.features[i]] =
            load(*from.tensor.tensor, source + from.features[i]);
        if (from.tensor.scales == nullptr) continue;
        target.scales[place + to.features[i]] = from.tensor.scales[source + from.features[i]];
      }
    }
  });
  return ComputedRows(1);
}

Checked<ComputedRows> interpret_combine_rows(const LeafCall& call) {
  const NamedTensor& slots = call.operands[0];
  const NamedTensor& weight = call.operands[2];
  const NamedTensor& target = call.targets[0];
  HP_TRY(const RouteAxes sides, route_axes_of(call, slots));
  const AxisList features = features_of(target, {sides.token});
  HP_REQUIRE_OK(check_features(call, features, slots));
  const Rows from{slots, stride_of(slots, sides.expert), stride_of(slots, sides.slot),
                  offsets_in(slots, features)};
  const Rows to{target, stride_of(target, sides.token), 0, offsets_in(target, features)};
  const std::int64_t choices = call.routing->choices;
  const std::int64_t tokens = std::ssize(call.routing->expert) / choices;
  call.workers.for_each(tokens, [&](int, std::int64_t token) {
    std::vector<double> sum(to.features.size());
    std::vector<Squares> squares(to.features.size());  // of the individual terms
    for (std::int64_t k = 0; k < choices; ++k) {
      const auto choice = static_cast<std::size_t>(token * choices + k);
      if (call.routing->slot[choice] < 0) continue;
      const std::int64_t source = from.at(call.routing->expert[choice], call.routing->slot[choice]);
      const std::int64_t weighed =
          stride_of(weight, sides.token) * token + stride_of(weight, sides.choice) * k;
      for (std::size_t i = 0; i < sum.size(); ++i) {
        const std::int64_t place = source + from.features[i];
        sum[i] += load(*weight.tensor, weighed) * load(*slots.tensor, place);
        squares[i].add(std::max(factor_at(weight, weighed) * size_at(slots, place),
                                size_at(weight, weighed) * factor_at(slots, place)));
      }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const std::int64_t place = to.at(token, 0) + to.features[i];
      target.scales[place] = squares[i].root();
      target.values[place] = sum[i];
    }
  });
  return ComputedRows(1);
}

}  // namespace harpe
