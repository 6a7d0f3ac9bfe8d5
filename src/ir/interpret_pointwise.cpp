#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "ir/interpret_leaves.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"
#include "leaves/leaf.h"
#include "support/check.h"

namespace harpe {
namespace {

// x / (1 + e^-x), computed with e^(-|x|/2), because e^-x may overflow while the quotient is finite.
double silu(double x) {
  const double root = std::exp(-std::abs(x) / 2);
  return (x < 0 ? x * root * root : x) / (1 + root * root);
}

// The value of one element; `b` is 0 for a leaf with one operand.
using Formula = std::function<double(double a, double b)>;

Formula formula_of(const Stmt& stmt) {
  switch (find_leaf_contract(stmt.leaf)->leaf) {
    case Leaf::Silu:
      return [](double a, double) { return silu(a); };
    case Leaf::Relu:
      return [](double a, double) { return a < 0 ? 0 : a; };
    case Leaf::Gelu:
      return [](double a, double) { return a * (std::erfc(-a / std::numbers::sqrt2) / 2); };
    case Leaf::Add:
      return [](double a, double b) { return a + b; };
    case Leaf::Mul:
      return [](double a, double b) { return a * b; };
    case Leaf::SiluMul:
      return [](double a, double b) { return silu(a) * b; };
    default:
      break;
  }
  HP_CHECK(is_leaf(stmt.leaf, Leaf::RmsScale), "a formula of leaf `" + stmt.leaf + "`");
  const double length = attribute_of(stmt, "length", 1);
  const double epsilon = attribute_of(stmt, "eps", 1e-6);
  return [=](double a, double b) { return a / std::sqrt(b / length + epsilon); };
}

struct Operands {
  std::array<double, 2> values{};
  std::array<double, 2> sizes{};  // 0 for exact operands
};

// The root mean square change of the result over all signs of the operands' errors, divided by
// `error`. Each operand is off by `error` times its size.
double spread_by(const Formula& formula, const Operands& operands, double error) {
  const double exact = formula(operands.values[0], operands.values[1]);
  Squares moved;
  double count = 0;
  for (const double a : {-error, error}) {
    for (const double b : {-error, error}) {
      const double other = formula(operands.values[0] + a * operands.sizes[0],
                                   operands.values[1] + b * operands.sizes[1]);
      if (!std::isfinite(other - exact)) continue;  // for example a root of a negative number
      moved.add((other - exact) / error);
      ++count;
    }
  }
  return count == 0 ? 0 : moved.root(count);
}

// As spread_by, but for nonlinear functions the larger of a large and a small error. Sums and
// products give the same for both.
double spread(const Formula& formula, const Operands& operands, double error) {
  if (operands.sizes == std::array<double, 2>{}) return 0;
  return std::max(spread_by(formula, operands, error), spread_by(formula, operands, error / 64));
}

}  // namespace

Checked<ComputedRows> interpret_pointwise(const LeafCall& call) {
  constexpr std::int64_t kElements = 4096;  // per work item
  const NamedTensor& target = call.targets[0];
  const AxisList axes = target.axes();
  const Formula formula = formula_of(*call.stmt);
  std::vector<std::vector<std::int64_t>> places;
  for (const NamedTensor& operand : call.operands) {
    for (const NamedTensor::Axis& axis : operand.axes()) {
      const NamedTensor::Axis* const same = target.find(axis.name);
      if (same != nullptr && same->size == axis.size) continue;
      return misfit(call, operand, "`" + target.buffer + "` has no such axis `" + axis.name + "`");
    }
    places.push_back(offsets_in(operand, axes));
  }
  const std::int64_t elements = points_in(axes);
  call.workers.for_each((elements + kElements - 1) / kElements, [&](int, std::int64_t turn) {
    const std::int64_t end = std::min(elements, (turn + 1) * kElements);
    for (std::int64_t i = turn * kElements; i < end; ++i) {
      Operands operands;
      for (std::size_t p = 0; p < places.size(); ++p) {
        const std::int64_t place = places[p][static_cast<std::size_t>(i)];
        operands.values.at(p) = load(*call.operands[p].tensor, place);
        const bool exact =
            call.operands[p].error == 0 && !is_leaf(call.stmt->leaf, Leaf::Gelu);  // Gelu rounds it
        operands.sizes.at(p) = exact ? 0 : size_at(call.operands[p], place);
      }
      target.scales[i] = spread(formula, operands, call.error);
      target.values[i] = formula(operands.values[0], operands.values[1]);
    }
  });
  return ComputedRows(1);
}

}  // namespace harpe
