#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "ir/interpret_leaves.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"

namespace harpe {
namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }

// Of one element; `b` of a leaf with one operand is 0.
using Formula = std::function<double(double a, double b)>;

Formula formula_of(const Stmt& stmt) {
  if (stmt.leaf == "silu") return [](double a, double) { return silu(a); };
  if (stmt.leaf == "relu") return [](double a, double) { return a < 0 ? 0 : a; };
  if (stmt.leaf == "gelu") {
    return [](double a, double) { return a * std::erfc(-a / std::numbers::sqrt2) / 2; };
  }
  if (stmt.leaf == "add") return [](double a, double b) { return a + b; };
  if (stmt.leaf == "mul") return [](double a, double b) { return a * b; };
  if (stmt.leaf == "silu_mul") return [](double a, double b) { return silu(a) * b; };
  const double length = attribute_of(stmt, "length", 1);
  const double epsilon = attribute_of(stmt, "eps", 1e-6);
  return [=](double a, double b) { return a / std::sqrt(b / length + epsilon); };
}

// Scales of the target's rows from those of the operands' rows at their place.
void measure(const LeafCall& call, const AxisList& axes, const Formula& formula) {
  const NamedTensor& target = call.targets[0];
  AxisList rows(axes.begin(), axes.end() - static_cast<std::ptrdiff_t>(target.dims.back().size()));
  const AxisList columns(axes.begin() + std::ssize(rows), axes.end());
  std::vector<std::vector<double>> scales;
  for (const NamedTensor& operand : call.operands) {
    const std::vector<std::int64_t> bases = offsets_in(operand, rows);
    const std::vector<std::int64_t> places = offsets_in(operand, columns);
    std::vector<double>& of_rows = scales.emplace_back();
    for (const std::int64_t base : bases) of_rows.push_back(scale_of_row(operand, base, places));
  }
  const std::vector<std::int64_t> bases = offsets_in(target, rows);
  for (std::size_t row = 0; row < bases.size(); ++row) {
    const std::string& leaf = call.stmt->leaf;
    double scale = scales[0][row];
    if (leaf == "add") scale += scales[1][row];
    if (leaf == "mul" || leaf == "silu_mul") scale *= scales[1][row];
    if (leaf == "rms_scale") scale = std::abs(formula(scale, scales[1][row]));
    target.scales[bases[row] / target.tensor->shape.back()] = scale;
  }
}

}  // namespace

Checked<ComputedRows> interpret_pointwise(const LeafCall& call) {
  constexpr std::int64_t kElements = 4096;  // of one turn of a worker
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
  parallel_for(call.threads, (elements + kElements - 1) / kElements, [&](int, std::int64_t turn) {
    const std::int64_t end = std::min(elements, (turn + 1) * kElements);
    for (std::int64_t i = turn * kElements; i < end; ++i) {
      std::array<double, 2> values{};
      for (std::size_t p = 0; p < places.size(); ++p) {
        values.at(p) = load(*call.operands[p].tensor, places[p][static_cast<std::size_t>(i)]);
      }
      target.values[i] = formula(values[0], values[1]);
    }
  });
  if (call.measured) measure(call, axes, formula);
  return ComputedRows(1);
}

}  // namespace harpe
