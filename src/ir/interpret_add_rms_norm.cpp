#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/interpret_leaves.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"
#include "support/check.h"

namespace harpe {
namespace {

// Offsets of rows and of their elements in one tensor; rows span all axes except the norm's.
struct NormPlaces {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> terms;
};

class RowNorm {
 public:
  explicit RowNorm(const LeafCall& call) : call_(call) {
    const NamedTensor& sum = call.targets[0];
    const AxisList along = call.operands[2].axes();
    AxisList kept = sum.axes();
    std::erase_if(kept, [&](const auto& axis) { return axis.name == along.front().name; });
    const auto places = [&](const NamedTensor& tensor) {
      return NormPlaces{offsets_in(tensor, kept), offsets_in(tensor, along)};
    };
    x_ = places(call.operands[0]);
    residual_ = places(call.operands[1]);
    weight_ = offsets_in(call.operands[2], along);
    sum_ = places(sum);
    y_ = places(call.targets[1]);
    epsilon_ = attribute_of(*call.stmt, "eps", 1e-6);
  }

  [[nodiscard]] std::int64_t rows() const { return std::ssize(sum_.rows); }

  void add(std::size_t row) const {
    const NamedTensor& sum = call_.targets[0];
    for (std::size_t i = 0; i < length(); ++i) {
      const std::int64_t x = x_.rows[row] + x_.terms[i];
      const std::int64_t residual = residual_.rows[row] + residual_.terms[i];
      const std::int64_t to = sum_.rows[row] + sum_.terms[i];
      sum.values[to] =
          load(*call_.operands[0].tensor, x) + load(*call_.operands[1].tensor, residual);
      sum.scales[to] = std::hypot(error_at(0, x), error_at(1, residual));
    }
  }

  // The divisor of a row. Requires the row's sums.
  [[nodiscard]] double root(std::size_t row) const {
    long double squares = 0;
    for (std::size_t i = 0; i < length(); ++i) {
      const long double value = sum_at(row, i);
      squares += value * value;
    }
    return std::sqrt(static_cast<double>(squares / static_cast<long double>(length())) + epsilon_);
  }

  // The error of an element of y comes from its own sum, from the root, to which all sums of the
  // row contribute, and from the weight.
  void scale(std::size_t row) const {
    const NamedTensor& y = call_.targets[1];
    const double divisor = root(row);
    Squares of_root;  // errors of sums times the derivative of the root
    for (std::size_t i = 0; i < length(); ++i) of_root.add(sum_at(row, i) * size_of_sum(row, i));
    const double moved =
        of_root.root() / (static_cast<double>(length()) * divisor * divisor);  // relative
    for (std::size_t i = 0; i < length(); ++i) {
      const double unit = sum_at(row, i) / divisor;
      const double weight = load(*call_.operands[2].tensor, weight_[i]);
      const std::int64_t to = y_.rows[row] + y_.terms[i];
      y.values[to] = unit * weight;
      y.scales[to] = std::hypot(weight * size_of_sum(row, i) / divisor, weight * unit * moved,
                                unit * error_at(2, weight_[i]));
    }
  }

 private:
  [[nodiscard]] std::size_t length() const { return weight_.size(); }
  [[nodiscard]] double sum_at(std::size_t row, std::size_t i) const {
    return call_.targets[0].values[sum_.rows[row] + sum_.terms[i]];
  }
  // The scale of a sum. Rounding the sum itself moves y by at most one rounding of y.
  [[nodiscard]] double size_of_sum(std::size_t row, std::size_t i) const {
    return call_.targets[0].scales[sum_.rows[row] + sum_.terms[i]];
  }
  // 0 for exact inputs.
  [[nodiscard]] double error_at(std::size_t operand, std::int64_t place) const {
    const NamedTensor& tensor = call_.operands[operand];
    return tensor.error == 0 ? 0 : size_at(tensor, place);
  }

  const LeafCall& call_;
  NormPlaces x_;
  NormPlaces residual_;
  NormPlaces sum_;
  NormPlaces y_;
  std::vector<std::int64_t> weight_;
  double epsilon_ = 0;
};

}  // namespace

Checked<ComputedRows> interpret_add_rms_norm(const LeafCall& call) {
  const RowNorm norm(call);
  call.workers.for_each(norm.rows(), [&](int, std::int64_t row) {
    norm.add(static_cast<std::size_t>(row));
    norm.scale(static_cast<std::size_t>(row));
  });
  return ComputedRows(2);
}

double least_norm_root(const LeafCall& call) {
  const RowNorm norm(call);
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t row = 0; row < norm.rows(); ++row) {
    least = std::min(least, norm.root(static_cast<std::size_t>(row)));
  }
  return least;
}

}  // namespace harpe
