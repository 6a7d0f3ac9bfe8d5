#include "bench/cuda/backward_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

namespace harpe::bench {
namespace {

constexpr std::uint32_t kMinusInfinity = 0xff800000U;

// 16 bytes more than the columns need.
GuardedRows make_rows(const Gpu& gpu, const AttentionCase& what, std::int64_t rows,
                      std::int64_t heads, Element element) {
  const std::int64_t columns = heads * what.query_dim;
  const std::int64_t room = what.packed ? 0 : 16 / device::bytes_of(element);
  return {gpu, what.batch * rows, columns, columns + room, element};
}

GuardedRows make_row_numbers(const Gpu& gpu, const AttentionCase& what) {
  return {gpu, what.batch * what.heads, what.rows, what.rows + (what.packed ? 0 : 5), Element::F32};
}

cuda::HeadTensor heads_of(const GuardedRows& rows, const AttentionCase& what) {
  return {.address = rows.address(),
          .strides = {.batch = rows.count() / what.batch * rows.stride(),
                      .row = rows.stride(),
                      .head = what.query_dim}};
}

cuda::HeadTensor numbers_of(const GuardedRows& rows, const AttentionCase& what) {
  return {.address = rows.address(),
          .strides = {.batch = what.heads * rows.stride(), .row = 1, .head = rows.stride()}};
}

float widen(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Calls body(i) for each i below `count`, on all cores.
void for_each_at_once(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers(std::max(1U, std::thread::hardware_concurrency()));
  for (std::jthread& worker : workers) {
    worker = std::jthread([&] {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    });
  }
}

// A gradient of one operand, before and after the launch.
struct Compared {
  const char* name;
  const std::vector<float>& start;  // empty: nothing is added to
  const std::vector<float>& end;
  std::int64_t rows;
  std::int64_t heads;
};

// Compares rows, from several threads.
class Comparer {
 public:
  explicit Comparer(std::int64_t columns) : columns_(columns) {}

  void compare(const Compared& gradient, const HeadRow& at, const BoundedRow& wanted) {
    const std::int64_t place =
        ((at.batch * gradient.rows + at.row) * gradient.heads + at.head) * columns_;
    const std::lock_guard lock(mutex_);
    for (std::size_t column = 0; column < wanted.size(); ++column) {
      const std::size_t i = static_cast<std::size_t>(place) + column;
      const double before = gradient.start.empty() ? 0 : static_cast<double>(gradient.start[i]);
      const double value = wanted[column].value + before;
      const double bound = wanted[column].bound + std::abs(before) * 0x1p-22;
      const double ratio = std::abs(static_cast<double>(gradient.end[i]) - value) / bound;
      if (!(ratio <= found_.worst)) found_.worst = ratio;  // a NaN counts as the worst
      if (ratio <= 1 || wrong_++ > 0) continue;
      first_ = fmt::format("{}[{}, {}, {}, {}] is {}, not {} within {:.2g}", gradient.name,
                           at.batch, at.row, at.head, column, gradient.end[i], value, bound);
    }
  }

  [[nodiscard]] BackwardProblem::Comparison result() {
    if (wrong_ > 0) {
      found_.wrong = fmt::format("{} elements beyond their bound, one of them {}", wrong_, first_);
    }
    return found_;
  }

 private:
  std::int64_t columns_;
  std::mutex mutex_;
  BackwardProblem::Comparison found_;
  std::int64_t wrong_ = 0;
  std::string first_;
};

}  // namespace

BackwardProblem::BackwardProblem(Gpu& gpu, const AttentionCase& what, std::uint64_t seed,
                                 CUstream stream)
    : gpu_(&gpu),
      case_(what),
      seed_(seed),
      q_(make_rows(gpu, what, what.rows, what.heads, what.in)),
      k_(make_rows(gpu, what, what.keys, what.kv_heads, what.in)),
      v_(make_rows(gpu, what, what.keys, what.kv_heads, what.in)),
      d_o_(make_rows(gpu, what, what.rows, what.heads, what.in)),
      lse_(make_row_numbers(gpu, what)),
      delta_(make_row_numbers(gpu, what)),
      dq_(make_rows(gpu, what, what.rows, what.heads, Element::F32)),
      dk_(make_rows(gpu, what, what.keys, what.kv_heads, Element::F32)),
      dv_(make_rows(gpu, what, what.keys, what.kv_heads, Element::F32)) {
  for (const GuardedRows* rows : {&q_, &k_, &v_, &d_o_, &delta_}) {
    rows->poison(stream);
    rows->fill(mix_bits(++seed), Distribution::Normal, stream);
  }
  lse_.poison(stream);
  // Scores are nearly normal, so this approximates the sum of a query's weights.
  fill_random(gpu,
              {.to = lse_.rows(),
               .seed = mix_bits(++seed),
               .distribution = Distribution::Uniform,
               .shift = static_cast<float>(std::log(static_cast<double>(what.keys)) + 0.5)},
              stream);
  for (std::int64_t slice = 0; slice < lse_.count(); ++slice) {
    gpu.fill_words(lse_.cell(slice, 5 * slice % what.rows), kMinusInfinity, 1, stream);
  }
}

cuda::BackwardSpec BackwardProblem::spec() const {
  const auto sums = [&](const GuardedRows& rows) {
    return cuda::BackwardSumSpec{.to = heads_of(rows, case_), .carry = case_.carried};
  };
  const SeenBand band = band_of(case_);
  cuda::BackwardSpec spec;
  spec.batch = case_.batch;
  spec.heads = case_.heads;
  spec.kv_heads = case_.kv_heads;
  spec.head_dim = case_.query_dim;
  spec.queries = case_.rows;
  spec.keys = case_.keys;
  spec.element = case_.in;
  spec.q = heads_of(q_, case_);
  spec.k = heads_of(k_, case_);
  spec.v = heads_of(v_, case_);
  spec.d_o = heads_of(d_o_, case_);
  spec.lse = numbers_of(lse_, case_);
  spec.delta = numbers_of(delta_, case_);
  spec.dq = sums(dq_);
  spec.dk = sums(dk_);
  spec.dv = sums(dv_);
  spec.scale = 1 / std::sqrt(static_cast<double>(case_.query_dim));
  spec.low = band.low;
  spec.high = band.high;
  return spec;
}

library::BackwardAddresses BackwardProblem::addresses() const {
  return {.inputs = {.q = q_.address(),
                     .k = k_.address(),
                     .v = v_.address(),
                     .o = q_.address(),
                     .lse = lse_.address()},
          .d_o = d_o_.address(),
          .dq = dq_.address(),
          .dk = dk_.address(),
          .dv = dv_.address()};
}

void BackwardProblem::reset(CUstream stream) const {
  std::uint64_t seed = seed_ + 100;
  for (const GuardedRows* rows : results()) {
    rows->poison(stream);
    if (case_.carried) rows->fill(mix_bits(++seed), Distribution::Normal, stream);
  }
}

void BackwardProblem::check_rooms(Verdict* verdict, CUstream stream) const {
  for (const GuardedRows* rows : results()) rows->check(*gpu_, verdict, stream);
}

std::vector<float> BackwardProblem::read(const GuardedRows& rows, CUstream stream) const {
  const cuda::MappedMemory copy = gpu_->host_memory(rows.count() * rows.row_bytes());
  gpu_->copy_rows({.to = copy.address(),
                   .to_stride = rows.row_bytes(),
                   .from = rows.address(),
                   .from_stride = rows.stride_bytes(),
                   .row_bytes = rows.row_bytes(),
                   .rows = rows.count()},
                  stream);
  gpu_->synchronise(stream);
  std::vector<float> values(static_cast<std::size_t>(rows.count() * rows.rows().columns));
  if (rows.rows().element == Element::F32) {
    std::memcpy(values.data(), copy.host().data(), values.size() * sizeof(float));
    return values;
  }
  std::vector<std::uint16_t> bits(values.size());
  std::memcpy(bits.data(), copy.host().data(), bits.size() * sizeof(std::uint16_t));
  std::ranges::transform(bits, values.begin(), widen);
  return values;
}

BackwardResults BackwardProblem::read_results(CUstream stream) const {
  return {.dq = read(dq_, stream), .dk = read(dk_, stream), .dv = read(dv_, stream)};
}

BackwardInputs BackwardProblem::read_inputs(CUstream stream) const {
  return {.q = read(q_, stream),
          .k = read(k_, stream),
          .v = read(v_, stream),
          .d_o = read(d_o_, stream),
          .lse = read(lse_, stream),
          .delta = read(delta_, stream)};
}

std::vector<HeadRow> BackwardProblem::choose_rows(std::int64_t rows, std::int64_t heads,
                                                  std::int64_t samples) const {
  std::vector<HeadRow> chosen;
  const std::int64_t all = case_.batch * heads * rows;
  const std::int64_t count = samples == 0 ? all : std::min(samples, all);
  Draw draw(seed_);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = count == all ? i : draw.below(all);
    chosen.push_back({.batch = at / (heads * rows), .head = at / rows % heads, .row = at % rows});
  }
  return chosen;
}

BackwardProblem::Comparison BackwardProblem::compare(const BackwardResults& results,
                                                     std::int64_t samples, CUstream stream) const {
  const BackwardInputs inputs = read_inputs(stream);
  BackwardResults start;
  if (case_.carried) {
    reset(stream);
    start = read_results(stream);
  }
  Comparer comparer(case_.query_dim);
  const Compared dq{"dq", start.dq, results.dq, case_.rows, case_.heads};
  const Compared dk{"dk", start.dk, results.dk, case_.keys, case_.kv_heads};
  const Compared dv{"dv", start.dv, results.dv, case_.keys, case_.kv_heads};
  const std::vector<HeadRow> queries = choose_rows(case_.rows, case_.heads, samples);
  for_each_at_once(queries.size(), [&](std::size_t i) {
    comparer.compare(dq, queries[i], query_gradient(case_, inputs, queries[i]));
  });
  const std::vector<HeadRow> keys = choose_rows(case_.keys, case_.kv_heads, samples);
  for_each_at_once(keys.size(), [&](std::size_t i) {
    const KeyGradients wanted = key_gradients(case_, inputs, keys[i]);
    comparer.compare(dk, keys[i], wanted.dk);
    comparer.compare(dv, keys[i], wanted.dv);
  });
  return comparer.result();
}

}  // namespace harpe::bench
