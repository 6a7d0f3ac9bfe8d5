// Checks the references on the GPU against the same sums in f64 on the host, because everything
// else is compared with them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "bench/cuda/guarded.h"
#include "bench/cuda/reference_checks.h"

namespace harpe::bench {
namespace {

constexpr const char* kCheck = "check reference";
// The sums in f64 have another order.
constexpr double kTolerance = 1e-11;

double value_of(std::uint16_t bits, Element element) {
  if (element == Element::BF16) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

// The rows without the padding between them.
std::vector<double> download(const Gpu& gpu, const GuardedRows& rows, CUstream stream) {
  const Rows shape = rows.rows();
  const cuda::MappedMemory copy = gpu.host_memory(rows.count() * rows.stride_bytes());
  gpu.copy(copy.address(), rows.address(), rows.count() * rows.stride_bytes(), stream);
  gpu.synchronise(stream);
  std::vector<double> values;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const auto* const bits = at<const std::uint16_t>(copy.address()) + row * shape.stride;
    for (std::int64_t column = 0; column < shape.columns; ++column) {
      values.push_back(value_of(bits[column], shape.element));
    }
  }
  return values;
}

std::vector<double> download(const Gpu& gpu, const cuda::DeviceMemory& memory, CUstream stream) {
  const cuda::MappedMemory copy = gpu.host_memory(memory.bytes());
  gpu.copy(copy.address(), memory.address(), memory.bytes(), stream);
  gpu.synchronise(stream);
  const auto* const first = at<const double>(copy.address());
  return {first, first + memory.bytes() / 8};
}

std::string differ(const std::vector<double>& found, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (found[i] == expected[i]) continue;
    const double limit = kTolerance * (1 + std::abs(expected[i]));
    if (!(std::abs(found[i] - expected[i]) <= limit)) {
      return fmt::format("value {} is {}, not {}", i, found[i], expected[i]);
    }
  }
  return "";
}

void check_product(Bench& bench, Element element, bool k_major) {
  const std::string name = fmt::format("product, type {}, {}", static_cast<int>(element),
                                       k_major ? "rows along k" : "rows along n");
  if (!bench.report().begins(kCheck, name)) return;
  constexpr std::int64_t kM = 77;
  constexpr std::int64_t kN = 91;
  constexpr std::int64_t kK = 53;
  const Gpu& gpu = bench.gpu();
  CUstream const stream = bench.stream();
  const GuardedRows a(gpu, kM, kK, kK + 11, element);
  const GuardedRows b(gpu, k_major ? kN : kK, k_major ? kK : kN, 101, element);
  a.poison(stream);
  b.poison(stream);
  a.fill(bench.options().seed, Distribution::Normal, stream);
  b.fill(bench.options().seed + 1, Distribution::Uniform, stream);
  const cuda::DeviceMemory value = gpu.memory(kM * kN * 8);
  const cuda::DeviceMemory bound = gpu.memory(kM * kN * 8);
  gemm_reference(gpu,
                 {.a = a.rows(),
                  .b = b.rows(),
                  .start = nullptr,
                  .row = {},
                  .adds_row = false,
                  .takes_gelu = false,
                  .value = at<double>(value.address()),
                  .bound = at<double>(bound.address()),
                  .sample = {.first = 0, .step = 1, .all = kM, .count = kM},
                  .n = kN,
                  .k = kK,
                  .a_m_major = false,
                  .b_k_major = k_major,
                  .out = element,
                  .roundings = 1},
                 stream);
  const std::vector<double> left = download(gpu, a, stream);
  const std::vector<double> right = download(gpu, b, stream);
  std::vector<double> expected(kM * kN, 0);
  for (std::int64_t i = 0; i < kM * kN * kK; ++i) {
    const std::int64_t m = i / (kN * kK);
    const std::int64_t n = i / kK % kN;
    const std::int64_t k = i % kK;
    expected[static_cast<std::size_t>(m * kN + n)] +=
        left[static_cast<std::size_t>(m * kK + k)] *
        right[static_cast<std::size_t>(k_major ? n * kK + k : k * kN + n)];
  }
  bench.report().add_check(kCheck, name, differ(download(gpu, value, stream), expected));
}

struct HostAttention {
  std::int64_t rows = 37;
  std::int64_t keys = 1500;  // more than the reference keeps scores of at once
  std::int64_t columns = 64;
  std::int64_t first_position = 400;
  std::int64_t window = 300;
};

// One head; rows see keys at [p - window + 1, p].
void attend(const HostAttention& shape, const std::vector<double>& q, const std::vector<double>& k,
            const std::vector<double>& v, std::vector<double>& o, std::vector<double>& lse) {
  const auto cell = [&](const std::vector<double>& from, std::int64_t row, std::int64_t column) {
    return from[static_cast<std::size_t>(row * shape.columns + column)];
  };
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::int64_t position = shape.first_position + row;
    std::vector<double> sums(static_cast<std::size_t>(shape.columns), 0);
    double total = 0;
    for (std::int64_t key = std::max<std::int64_t>(0, position - shape.window + 1);
         key <= std::min(position, shape.keys - 1); ++key) {
      double score = 0;
      for (std::int64_t d = 0; d < shape.columns; ++d) score += cell(q, row, d) * cell(k, key, d);
      const double weight = std::exp(score / std::sqrt(static_cast<double>(shape.columns)));
      total += weight;
      for (std::int64_t d = 0; d < shape.columns; ++d) {
        sums[static_cast<std::size_t>(d)] += weight * cell(v, key, d);
      }
    }
    for (const double sum : sums) o.push_back(total == 0 ? 0 : sum / total);
    lse.push_back(std::log(total));
  }
}

void check_attention_reference(Bench& bench) {
  const std::string name = "attention";
  if (!bench.report().begins(kCheck, name)) return;
  const HostAttention shape;
  const Gpu& gpu = bench.gpu();
  CUstream const stream = bench.stream();
  const std::int64_t stride = shape.columns + 8;
  const GuardedRows q(gpu, shape.rows, shape.columns, stride, Element::BF16);
  const GuardedRows k(gpu, shape.keys, shape.columns, stride, Element::BF16);
  const GuardedRows v(gpu, shape.keys, shape.columns, stride, Element::BF16);
  std::uint64_t seed = bench.options().seed;
  for (const GuardedRows* rows : {&q, &k, &v}) {
    rows->poison(stream);
    rows->fill(++seed, Distribution::Normal, stream);
  }
  const std::int64_t cells = shape.rows * shape.columns;
  const cuda::DeviceMemory value = gpu.memory(cells * 8);
  const cuda::DeviceMemory bound = gpu.memory(cells * 8);
  const cuda::DeviceMemory lse = gpu.memory(shape.rows * 8);
  const cuda::DeviceMemory lse_bound = gpu.memory(shape.rows * 8);
  AttentionReferenceArgs args{};
  args.q = at<void>(q.address());
  args.k = at<void>(k.address());
  args.v = at<void>(v.address());
  args.value = at<double>(value.address());
  args.bound = at<double>(bound.address());
  args.lse = at<double>(lse.address());
  args.lse_bound = at<double>(lse_bound.address());
  args.sample = {.first = 0, .step = 1, .all = shape.rows, .count = shape.rows};
  args.keys = shape.keys;
  args.batch = args.heads = args.kv_heads = 1;
  args.columns = args.v_columns = static_cast<std::int32_t>(shape.columns);
  for (std::int64_t* const strides : {args.q_strides, args.k_strides, args.v_strides}) {
    strides[1] = stride;
  }
  args.first_position = shape.first_position;
  args.window = shape.window;
  args.causal = true;
  args.scale = 1 / std::sqrt(static_cast<double>(shape.columns));
  args.in = args.out = Element::BF16;
  attention_reference(gpu, args, stream);
  std::vector<double> o;
  std::vector<double> sums;
  attend(shape, download(gpu, q, stream), download(gpu, k, stream), download(gpu, v, stream), o,
         sums);
  std::string wrong = differ(download(gpu, value, stream), o);
  if (wrong.empty()) wrong = differ(download(gpu, lse, stream), sums);
  bench.report().add_check(kCheck, name, wrong);
}

// Provokes every finding that a comparison can make.
void check_compare(Bench& bench) {
  const std::string name = "comparison";
  if (!bench.report().begins(kCheck, name)) return;
  const Gpu& gpu = bench.gpu();
  CUstream const stream = bench.stream();
  const GuardedRows rows(gpu, 3, 5, 8, Element::F32);
  const cuda::DeviceMemory zeros = gpu.memory(15 * 8);
  const cuda::DeviceMemory ones = gpu.memory(15 * 8);
  gpu.fill_bytes(zeros.address(), 0, zeros.bytes(), stream);
  gpu.fill_bytes(ones.address(), 0x3f, ones.bytes(), stream);  // about 4.8e-4 each
  rows.poison(stream);
  VerdictBox box(gpu);
  const auto look = [&] {
    box.clear(stream);
    compare(gpu,
            {.out = rows.rows(),
             .sample = {.first = 0, .step = 1, .all = 3, .count = 3},
             .value = at<const double>(zeros.address()),
             .bound = at<const double>(ones.address()),
             .verdict = box.device()},
            stream);
    rows.check(gpu, box.device(), stream);
    return box.read(stream);
  };
  std::string wrong;
  if (look().wrong != 15 || look().altered != 0) wrong = "NaN passes";
  for (std::int64_t row = 0; row < 3; ++row) gpu.fill_bytes(rows.row(row), 0, 20, stream);
  if (look().wrong != 0 || look().compared != 15) wrong = "zeros are not zeros";
  gpu.fill_bytes(rows.cell(1, 2), 0x3e, 4, stream);  // about 0.19
  if (look().wrong != 1 || look().first != 7) wrong = "a wrong element is not found";
  gpu.fill_bytes(rows.cell(1, 2), 0, 4, stream);
  gpu.fill_bytes(rows.cell(0, 5), 0, 1, stream);
  if (look().altered != 1) wrong = "a byte beside the output is not found";
  bench.report().add_check(kCheck, name, wrong);
}

}  // namespace

void check_references(Bench& bench) {
  for (const Element element : {Element::BF16, Element::F16}) {
    for (const bool k_major : {false, true}) check_product(bench, element, k_major);
  }
  check_attention_reference(bench);
  check_compare(bench);
}

}  // namespace harpe::bench
