#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include "support/check.h"
#include "tests/support/random_chain.h"

namespace harpe::testing_support {
namespace {

using Real = long double;
using Values = std::map<std::string, ChainValue>;

// An element and a bound on its rounding error.
struct Number {
  Real value = 0;
  Real error = 0;
};

Real unit_of(DType type) { return unit_roundoff(type); }
// Below the smallest normal number the spacing stays constant.
Real step_of(DType type) { return unit_of(type) * static_cast<Real>(smallest_normal(type)); }

class Evaluator {
 public:
  Evaluator(const Chain& chain, const TensorMap& inputs, const MistakeAt& mistake)
      : chain_(chain), mistake_(mistake) {
    for (const auto& [name, tensor] : inputs) {
      ChainValue& value = make(name);
      for (std::size_t i = 0; i < value.values.size(); ++i) {
        value.values[i] = load(tensor, static_cast<std::int64_t>(i));
      }
    }
  }

  ChainValue run() {
    for (std::size_t step = 0; step < chain_.steps.size(); ++step) {
      const ChainStep& one = chain_.steps[step];
      const bool mistaken = mistake_.mistake != Mistake::None && mistake_.step == step;
      make(one.target);
      for (std::int64_t row = 0; row < values_.at(one.target).rows; ++row) {
        const bool here =
            mistaken && row >= mistake_.first_row && row < mistake_.first_row + mistake_.rows;
        for (std::int64_t column = 0; column < values_.at(one.target).columns; ++column) {
          const Number result = round(one.target, compute(one, row, column, here));
          const auto at = static_cast<std::size_t>(row * values_.at(one.target).columns + column);
          values_.at(one.target).values[at] = result.value;
          values_.at(one.target).errors[at] = result.error;
        }
      }
    }
    return values_.at(chain_.output);
  }

 private:
  ChainValue& make(const std::string& name) {
    const auto& [rows, columns] = chain_.shapes.at(name);
    const auto count = static_cast<std::size_t>(rows * columns);
    return values_[name] = {rows, columns, std::vector<Real>(count), std::vector<Real>(count)};
  }

  // An operand with one column repeats it along the columns.
  [[nodiscard]] Number at(const std::string& name, std::int64_t row, std::int64_t column) const {
    const ChainValue& value = values_.at(name);
    const auto i =
        static_cast<std::size_t>(row * value.columns + (value.columns == 1 ? 0 : column));
    return {value.values[i], value.errors[i]};
  }

  [[nodiscard]] Number round(const std::string& target, Number x) const {
    const DType type = chain_.types.at(target);
    x.error += (std::abs(x.value) + x.error) * unit_of(type) + step_of(type);
    return x;
  }

  [[nodiscard]] DType state_of(const ChainStep& step) const {
    return state_dtype(chain_.types.at(step.operands[0]));
  }

  [[nodiscard]] Number sum(const ChainStep& step, std::int64_t row, std::int64_t column,
                           bool mistaken) const {
    const bool is_product = step.leaf == "matmul";
    const std::int64_t length = values_.at(step.operands[0]).columns;
    Number total;
    Real magnitude = 0;
    for (std::int64_t k = 0; k < length; ++k) {
      const bool here = mistaken && k >= mistake_.first && k < mistake_.first + mistake_.count;
      if (here && mistake_.mistake == Mistake::DropsChunk) continue;
      const std::int64_t other =
          here && mistake_.mistake == Mistake::TakesWrong ? (k + mistake_.count) % length : k;
      const Number a = at(step.operands[0], row, k);
      const Number b =
          is_product ? at(step.operands[1], other, column) : at(step.operands[1], row, other);
      const int times = here && mistake_.mistake == Mistake::AddsTwice ? 2 : 1;
      total.value += static_cast<Real>(times) * a.value * b.value;
      total.error += std::abs(a.value) * b.error + (std::abs(b.value) + b.error) * a.error;
      magnitude += (std::abs(a.value) + a.error) * (std::abs(b.value) + b.error);
    }
    const auto terms = static_cast<Real>(length + 2);
    const auto hops = static_cast<Real>(chain_.ranks + 1);
    const DType wire = chain_.narrowest;
    total.error += magnitude * (terms * unit_of(state_of(step)) + hops * unit_of(wire)) +
                   terms * step_of(state_of(step)) + hops * step_of(wire);
    return total;
  }

  [[nodiscard]] static Real silu(Real x) { return x / (1 + std::exp(-x)); }

  // Exact, except for the errors of the operands.
  [[nodiscard]] static Number apply(const std::string& leaf, Number a, Number b, Real length) {
    constexpr Real kSteepest = 1.13L;
    if (leaf == "copy") return a;
    if (leaf == "relu") return {std::max<Real>(a.value, 0), a.error};
    if (leaf == "silu") return {silu(a.value), kSteepest * a.error};
    if (leaf == "gelu") {
      const Real root = std::numbers::sqrt2_v<Real>;
      return {a.value * std::erfc(-a.value / root) / 2, kSteepest * a.error};
    }
    if (leaf == "add") return {a.value + b.value, a.error + b.error};
    if (leaf == "silu_mul") a = {silu(a.value), kSteepest * a.error};
    if (leaf == "mul" || leaf == "silu_mul") {
      return {a.value * b.value,
              std::abs(a.value) * b.error + (std::abs(b.value) + b.error) * a.error};
    }
    HP_CHECK(leaf == "rms_scale", "`" + leaf + "` is a leaf of chains");
    const auto root_of = [&](Real squares) {
      return std::sqrt(std::max<Real>(squares, 0) / length + 0.001L);
    };
    const Real value = a.value / root_of(b.value);
    return {value, (std::abs(a.value) + a.error) / root_of(b.value - b.error) - std::abs(value)};
  }

  [[nodiscard]] Number compute(const ChainStep& step, std::int64_t row, std::int64_t column,
                               bool mistaken) const {
    if (step.leaf == "matmul" || step.leaf == "rowdot") return sum(step, row, column, mistaken);
    const Number a = at(step.operands[0], row, column);
    const Number b = step.operands.size() > 1 ? at(step.operands[1], row, column) : Number{};
    const auto length = static_cast<Real>(values_.at(step.operands[0]).columns);
    Number result = apply(step.leaf, a, b, length);
    // Leaves of a few operations, among them an exponential of the operand.
    if (step.leaf != "copy" && step.leaf != "relu") {
      const Real x = 1 + std::abs(a.value) + (step.leaf == "gelu" ? a.value * a.value : 0);
      result.error += 8 * x * unit_of(state_of(step)) * (std::abs(result.value) + result.error);
    }
    const bool here =
        mistaken && column >= mistake_.first && column < mistake_.first + mistake_.count;
    if (here) result.value = mistake_.mistake == Mistake::DropsChunk ? 0 : a.value;
    return result;
  }

  const Chain& chain_;
  const MistakeAt& mistake_;
  Values values_;
};

}  // namespace

ChainValue evaluate_chain(const Chain& chain, const TensorMap& inputs, const MistakeAt& mistake) {
  return Evaluator(chain, inputs, mistake).run();
}

MistakeAt draw_mistake(const Chain& chain, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() %
                                     static_cast<std::uint64_t>(std::max<std::int64_t>(limit, 1)));
  };
  MistakeAt mistake;
  mistake.step = static_cast<std::size_t>(below(std::ssize(chain.steps)));
  const ChainStep& step = chain.steps[mistake.step];
  const auto& [rows, columns] = chain.shapes.at(step.target);
  const bool sums = step.leaf == "matmul" || step.leaf == "rowdot";
  const std::int64_t length = sums ? chain.shapes.at(step.operands[0]).second : columns;
  constexpr std::array kOfSums = {Mistake::DropsChunk, Mistake::AddsTwice, Mistake::TakesWrong};
  constexpr std::array kOfOthers = {Mistake::DropsChunk, Mistake::LosesOperand};
  mistake.mistake = sums ? kOfSums[static_cast<std::size_t>(below(3))]
                         : kOfOthers[static_cast<std::size_t>(below(2))];
  mistake.count = (length + 3) / 4;
  mistake.first = below(4) * mistake.count;
  mistake.rows = (rows + 1) / 2;
  mistake.first_row = below(2) * mistake.rows;
  return mistake;
}

}  // namespace harpe::testing_support
