#include "run/check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "io/npy.h"
#include "ir/blocks.h"
#include "ir/interpret.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Positions on both sides of every block border of every axis that indexes rows of an output.
Checked<Ok> add_borders(const Plan& plan, std::set<std::int64_t>& borders) {
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  for (const BufferTable& buffer : blocks.buffers()) {
    if (buffer.role != Role::Out) continue;
    for (const int axis : buffer.axes) {
      const AxisTable& table = blocks.axes()[static_cast<std::size_t>(axis)];
      for (const std::int64_t start : table.starts) {
        if (start > 0) borders.insert(start - 1);
        if (start < table.size) borders.insert(start);
      }
    }
  }
  return Ok{};
}

Checked<std::vector<std::int64_t>> block_borders(const std::vector<const Plan*>& plans) {
  std::set<std::int64_t> borders;
  for (const Plan* const plan : plans) HP_REQUIRE_OK(add_borders(*plan, borders));
  return std::vector<std::int64_t>(borders.begin(), borders.end());
}

std::vector<std::int64_t> index_of(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

// 0 for equal values, infinities and NaNs included; inf if only one side is finite.
double difference(double got, double wanted) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return 0;
  if (!std::isfinite(got) || !std::isfinite(wanted)) return kInfinity;
  return std::abs(got - wanted);
}

// Compares the rows of one output that the reference computed.
class Comparer {
 public:
  // `scales`: Meaning::scales; `floor`: ErrorBound::floor.
  Comparer(const Producer& producer, const std::string& buffer, const HostTensor& wanted,
           const HostTensor& got, const std::vector<double>& scales, double floor)
      : scales_(scales), wanted_(wanted), got_(got), floor_(floor) {
    HP_CHECK(got.shape == wanted.shape, "`" + buffer + "` has shape " + print_shape(got.shape) +
                                            ", its reference " + print_shape(wanted.shape));
    if (!wanted.shape.empty()) length_ = wanted.shape.back();
    // A logsumexp has no row with a scale: it is a logarithm, compared to the larger of 1 and
    // itself.
    is_logarithm_ = producer.stmt->monoid == Monoid::Lse && producer.target == 1;
    out_.buffer = buffer;
    out_.rows = length_ == 0 ? 0 : element_count(wanted) / length_;
  }

  Comparison compare(const std::vector<std::int64_t>& sampled) {
    if (sampled.empty()) {
      for (std::int64_t row = 0; row < out_.rows; ++row) compare_row(row, false);
    } else {
      for (const std::int64_t row : sampled) compare_row(row, true);
    }
    return out_;
  }

 private:
  void compare_row(std::int64_t row, bool sampled) {
    ++out_.checked;
    const double scale = is_logarithm_ ? 1 : scale_of(row);
    for (std::int64_t i = row * length_; i < (row + 1) * length_; ++i) {
      const double wanted = load(wanted_, i);
      if (sampled && std::isnan(wanted)) continue;  // not computed; the row is sampled
      const double got = load(got_, i);
      double error = difference(got, wanted);
      if (error == 0) continue;
      const bool is_own_scale = is_logarithm_ && std::isfinite(wanted);
      error /= (is_own_scale ? std::max(1.0, std::abs(wanted)) : scale) + floor_;
      if (error <= out_.error) continue;
      out_.error = error;
      out_.at = index_of(i, wanted_.shape);
      out_.got = got;
      out_.wanted = wanted;
    }
  }

  [[nodiscard]] double scale_of(std::int64_t row) const {
    double largest = 0;
    for (std::int64_t i = row * length_; i < (row + 1) * length_; ++i) {
      for (const double size : {std::abs(load(wanted_, i)), scales_[static_cast<std::size_t>(i)]}) {
        if (std::isfinite(size)) largest = std::max(largest, size);
      }
    }
    return largest;
  }

  const std::vector<double>& scales_;  // NaN if the reference reports none
  const HostTensor& wanted_;
  const HostTensor& got_;
  double floor_;
  std::int64_t length_ = 1;
  bool is_logarithm_ = false;
  Comparison out_;
};

// The roundings of the plans: 64 of the coarsest type that they store or send, but no more than the
// default.
Roundings roundings_of(const std::vector<const Plan*>& plans) {
  constexpr double kNests = 64;
  Roundings roundings;
  double unit = 0;
  const auto note = [&](DType type) {
    if (is_floating(type)) unit = std::max(unit, unit_roundoff(type));
  };
  for (const Buffer* const buffer : buffers_of(plans.front()->program)) note(buffer->dtype);
  for (const Plan* const plan : plans) {
    for (const NestForm& nest : plan->form.nests) {
      for (const NestItem& item : nest.items) {
        const auto* const move = std::get_if<Move>(&item);
        if (move == nullptr || !move->wire) continue;
        note(*move->wire);
        if (move->kind == MoveKind::Stage) roundings.inputs.insert(move->buffer);
      }
    }
  }
  roundings.error = std::min(roundings.error, kNests * unit);
  return roundings;
}

std::string print_short(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific, 2)
                       .ptr;
  return {buffer.data(), end};
}

}  // namespace

bool CheckReport::passed() const { return std::ranges::all_of(outputs, &Comparison::passed); }

Checked<Reference> make_reference(const std::vector<const Plan*>& plans, const TensorMap& inputs,
                                  std::uint64_t seed, int threads, const TimeLimit& limit) {
  const Program& program = plans.front()->program;
  std::optional<RowSample> sample;
  if (flops_of(program) > kFullCheckFlops) {
    HP_TRY(std::vector<std::int64_t> borders, block_borders(plans));
    sample = RowSample{.seed = seed, .rows = kSampledRows, .query_borders = std::move(borders)};
  }
  Reference reference;
  reference.sampled = sample.has_value();
  HP_TRY(reference.meaning,
         interpret(program, inputs, sample, threads, roundings_of(plans), &limit));
  reference.magnitudes = {.scores = reference.meaning.scores,
                          .roots = reference.meaning.roots,
                          .largest = reference.meaning.largest};
  for (const auto& [buffer, tensor] : inputs) {
    reference.magnitudes.largest.emplace(buffer, largest_magnitude(tensor));
  }
  return reference;
}

CheckReport compare_outputs(const Plan& plan, const TensorMap& outputs,
                            const Reference& reference) {
  const Meaning& meaning = reference.meaning;
  CheckReport report;
  report.sampled = reference.sampled;
  for (const auto& [buffer, got] : outputs) {
    const auto wanted = meaning.outputs.find(buffer);
    HP_CHECK(wanted != meaning.outputs.end(), "the reference has no `" + buffer + "`");
    const auto sampled = meaning.sampled_rows.find(buffer);
    const ErrorBound terms = bound_of(plan, buffer, reference.magnitudes);
    Comparison comparison =
        Comparer(producer_of(plan.program, buffer), buffer, wanted->second, got,
                 meaning.scales.at(buffer), terms.floor())
            .compare(sampled == meaning.sampled_rows.end() ? std::vector<std::int64_t>()
                                                           : sampled->second);
    comparison.terms = terms;
    comparison.bound = comparison.terms.limit();
    report.outputs.push_back(std::move(comparison));
  }
  return report;
}

Checked<CheckReport> check_outputs(const Plan& plan, const TensorMap& inputs,
                                   const TensorMap& outputs, std::uint64_t seed, int threads,
                                   const TimeLimit& limit) {
  HP_TRY(const Reference reference, make_reference({&plan}, inputs, seed, threads, limit));
  return compare_outputs(plan, outputs, reference);
}

Diag failure_of(const CheckReport& report) {
  const auto failed = std::ranges::find_if(
      report.outputs, [](const Comparison& comparison) { return !comparison.passed(); });
  HP_CHECK(failed != report.outputs.end(), "no comparison failed");
  return make_diag(DiagCode::I401, {{"name", failed->buffer},
                                    {"error", print_short(failed->error)},
                                    {"where", print_shape(failed->at)},
                                    {"bound", print_short(failed->bound)}});
}

}  // namespace harpe
