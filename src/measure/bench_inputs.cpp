#include "measure/bench_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "run/bound.h"

namespace harpe {
namespace {

constexpr std::int64_t kDrawn = 1'048'573;  // a prime
constexpr std::int64_t kRows = 512;

std::int64_t product_of(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

HostTensor draw(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed,
                const std::string& name) {
  const std::int64_t count = product_of(shape);
  if (count <= kDrawn) return random_tensor(dtype, shape, seed, name);
  const HostTensor block = random_tensor(dtype, {kDrawn}, seed, name);
  HostTensor whole = make_tensor(dtype, shape);
  std::size_t done = block.data.size();
  std::memcpy(whole.data.data(), block.data.data(), done);
  while (done < whole.data.size()) {
    const std::size_t more = std::min(done, whole.data.size() - done);
    std::memcpy(whole.data.data() + done, whole.data.data(), more);
    done += more;
  }
  return whole;
}

double unit_of(DType dtype) {
  if (dtype == DType::BF16) return 0x1p-8;
  return dtype == DType::F16 ? 0x1p-11 : 0x1p-24;
}

}  // namespace

TensorMap draw_bench_inputs(const Program& program, std::uint64_t seed) {
  TensorMap inputs;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role != Role::In) continue;
    inputs.emplace(buffer->name,
                   draw(buffer->dtype, shape_of(program, *buffer), seed, buffer->name));
  }
  return inputs;
}

double largest_difference(const HostTensor& got, const HostTensor& wanted, bool is_logarithm) {
  const std::int64_t length = wanted.shape.empty() ? 1 : wanted.shape.back();
  const std::int64_t rows = length == 0 ? 0 : element_count(wanted) / length;
  const std::int64_t looked_at = std::min(rows, kRows);
  double largest = 0;
  for (std::int64_t i = 0; i < looked_at; ++i) {
    const std::int64_t row = looked_at == 1 ? 0 : i * (rows - 1) / (looked_at - 1);
    double scale = is_logarithm ? 1 : 0;
    double difference = 0;
    for (std::int64_t at = row * length; at < (row + 1) * length; ++at) {
      const double a = load(got, at);
      const double b = load(wanted, at);
      if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
      scale = std::max(scale, std::abs(b));
      difference = std::max(difference, std::abs(a - b));
    }
    if (difference > 0) largest = std::max(largest, difference / scale);
  }
  return largest;
}

double library_margin(const Plan& plan, const std::string& buffer) {
  constexpr double kSafety = 4;
  const double unit = unit_of(find_buffer(plan.program, buffer)->dtype);
  const double roundings = 2 * static_cast<double>(plan.mesh.ranks());
  return kSafety * std::sqrt(roundings) * unit;
}

double bench_bound(const Plan& plan, const std::string& buffer) {
  // Scores of numbers below 1 stay far below these magnitudes.
  const Magnitudes magnitudes{.other_scores = {.score = 4, .logsum = 16}};
  return bound_of(plan, buffer, magnitudes).limit() + library_margin(plan, buffer);
}

}  // namespace harpe
