#include "ir/interpret_math.h"

#include <algorithm>
#include <chrono>

#include "ir/rounding.h"
#include "support/multiversion.h"
#include "support/threads.h"
#include "support/time_limit.h"

namespace harpe {
namespace {

constexpr std::chrono::milliseconds kPause{10};  // between polls of a limit

template <class Bits, class Widen>
void gather_as(const MatrixPart& part, double* out, std::int64_t stride, Widen widen) {
  const Bits* data = reinterpret_cast<const Bits*>(part.tensor->data.data()) + part.base;
  for (const std::int64_t row : part.rows) {
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      out[i] = static_cast<double>(widen(data[row + part.columns[i]]));
    }
    out += stride;
  }
}

// Rows of c one by one, rows of b in fours: each element of c is loaded and stored once per four
// multiplications.
HP_CLONES void multiply_rows(const Panel& a, const Panel& b, const Panel& c, std::int64_t m,
                             std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < m; ++i) {
    const double* left = a.data + i * a.stride;
    double* __restrict out = c.data + i * c.stride;
    std::int64_t p = 0;
    static_assert(kSumUnit == 4);
    for (; p + 4 <= k; p += 4) {
      const double* __restrict right = b.data + p * b.stride;
      const double* __restrict right1 = right + b.stride;
      const double* __restrict right2 = right1 + b.stride;
      const double* __restrict right3 = right2 + b.stride;
      const double x = left[p];
      const double x1 = left[p + 1];
      const double x2 = left[p + 2];
      const double x3 = left[p + 3];
      for (std::int64_t j = 0; j < n; ++j) {
        out[j] += (x * right[j] + x1 * right1[j]) + (x2 * right2[j] + x3 * right3[j]);
      }
    }
    for (; p < k; ++p) {
      const double* __restrict right = b.data + p * b.stride;
      for (std::int64_t j = 0; j < n; ++j) out[j] += left[p] * right[j];
    }
  }
}

}  // namespace

void gather(const MatrixPart& part, double* out, std::int64_t stride) {
  switch (part.tensor->dtype) {
    case DType::F64:
      return gather_as<double>(part, out, stride, [](double x) { return x; });
    case DType::F32:
      return gather_as<float>(part, out, stride, [](float x) { return x; });
    case DType::F16:
      return gather_as<std::uint16_t>(part, out, stride, &widen_f16);
    case DType::BF16:
      return gather_as<std::uint16_t>(part, out, stride, &widen_bf16);
    default:
      break;
  }
  for (const std::int64_t row : part.rows) {
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      out[i] = load(*part.tensor, part.base + row + part.columns[i]);
    }
    out += stride;
  }
}

void multiply_add(const Panel& a, const Panel& b, const Panel& c, std::int64_t m, std::int64_t n,
                  std::int64_t k) {
  multiply_rows(a, b, c, m, n, k);
}

void Workers::for_each(std::int64_t items,
                       const std::function<void(int worker, std::int64_t item)>& run) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&](int worker) {
    while (goes_on(worker)) {
      const std::int64_t item = next++;
      if (item >= items) return;
      run(worker, item);
    }
  };
  const auto workers = static_cast<std::size_t>(std::clamp<std::int64_t>(items, 1, threads_));
  Threads others(workers - 1, [&](std::size_t i) { work(static_cast<int>(i) + 1); });
  work(0);
  while (!others.end_within(kPause)) (void)goes_on(0);
  others.join();
}

bool Workers::goes_on(int worker) {
  if (is_over_.load(std::memory_order_relaxed)) return false;
  if (worker != 0 || limit_ == nullptr) return true;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (now - std::chrono::nanoseconds(asked_) < kPause) return true;
  asked_ = std::chrono::nanoseconds(now).count();
  if (limit_->is_over()) is_over_.store(true, std::memory_order_relaxed);
  return !is_over_.load(std::memory_order_relaxed);
}

}  // namespace harpe
