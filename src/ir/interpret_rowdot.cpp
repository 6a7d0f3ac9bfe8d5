#include <algorithm>
#include <vector>

#include "ir/interpret_leaves.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"

namespace harpe {

Checked<ComputedRows> interpret_rowdot(const LeafCall& call) {
  constexpr std::int64_t kRows = 1024;  // per work item
  const NamedTensor& a = call.operands[0];
  const NamedTensor& b = call.operands[1];
  const NamedTensor& c = call.targets[0];
  AxisList summed;
  for (const NamedTensor* operand : {&a, &b}) {
    for (const NamedTensor::Axis& axis : operand->axes()) {
      if (c.find(axis.name) != nullptr) continue;
      const bool known =
          std::ranges::find(summed, axis.name, &NamedTensor::Axis::name) != summed.end();
      if (!known) summed.push_back(axis);
    }
  }
  for (const NamedTensor::Axis& axis : c.axes()) {
    if (a.find(axis.name) != nullptr || b.find(axis.name) != nullptr) continue;
    return misfit(call, c, "neither operand has axis `" + axis.name + "`");
  }
  if (summed.size() != 1) {
    return misfit(call, c, "it lacks " + std::to_string(summed.size()) + " axes, not one");
  }
  const AxisList kept = c.axes();
  const auto places = [&](const NamedTensor& tensor) {
    return std::pair(offsets_in(tensor, kept), offsets_in(tensor, summed));
  };
  const auto [a_rows, a_terms] = places(a);
  const auto [b_rows, b_terms] = places(b);
  const std::vector<std::int64_t> c_rows = offsets_in(c, kept);
  const std::int64_t rows = std::ssize(c_rows);
  const auto add_up = [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = 0; i < a_terms.size(); ++i) {
      sum += load(*a.tensor, a_rows[row] + a_terms[i]) * load(*b.tensor, b_rows[row] + b_terms[i]);
    }
    return sum;
  };
  // Errors of either operand, independent of each other.
  const auto measure = [&](std::size_t row) {
    Squares of_a;
    Squares of_b;
    for (std::size_t i = 0; i < a_terms.size(); ++i) {
      const std::int64_t left = a_rows[row] + a_terms[i];
      const std::int64_t right = b_rows[row] + b_terms[i];
      of_a.add(size_at(a, left) * factor_at(b, right));
      of_b.add(factor_at(a, left) * size_at(b, right));
    }
    return std::max(of_a.root(), of_b.root());
  };
  call.workers.for_each((rows + kRows - 1) / kRows, [&](int, std::int64_t turn) {
    const std::int64_t end = std::min(rows, (turn + 1) * kRows);
    for (std::int64_t row = turn * kRows; row < end; ++row) {
      const auto i = static_cast<std::size_t>(row);
      c.scales[c_rows[i]] = measure(i);
      c.values[c_rows[i]] = add_up(i);
    }
  });
  return ComputedRows(1);
}

}  // namespace harpe
