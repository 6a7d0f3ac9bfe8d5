#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "ir/tensor.h"

namespace harpe {

struct TimeLimit;

// The reference's arithmetic: f64, plain loops.

// A matrix inside a tensor: element (r, c) lies at base + rows[r] + columns[c].
struct MatrixPart {
  const HostTensor* tensor = nullptr;
  std::int64_t base = 0;
  std::span<const std::int64_t> rows;
  std::span<const std::int64_t> columns;
};

// out[r * stride + c] = the part's element (r, c), as f64.
void gather(const MatrixPart& part, double* out, std::int64_t stride);

// A dense matrix: row-major, `stride` elements a row.
struct Panel {
  double* data = nullptr;
  std::int64_t stride = 0;
};

// c[m, n] += a[m, k] * b[k, n]. An element's sum depends only on its row of a and its column of b,
// and cutting k at multiples of kSumUnit does not change it.
constexpr std::int64_t kSumUnit = 4;
void multiply_add(const Panel& a, const Panel& b, const Panel& c, std::int64_t m, std::int64_t n,
                  std::int64_t k);

// Computes a leaf on several threads until the optional limit expires. The calling thread is worker
// 0; only it polls the limit, because callers check for signals there.
class Workers {
 public:
  Workers(int threads, const TimeLimit* limit)
      : threads_(threads < 1 ? 1 : threads), limit_(limit) {}

  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(threads_); }
  // Calls run(worker, item) once for every item in 0 .. items. Concurrent calls have different
  // workers, all below count(). Skips the remaining items once the limit expires.
  void for_each(std::int64_t items, const std::function<void(int worker, std::int64_t item)>& run);
  // False once the limit expires; the result of `worker` is then ignored. Items that take longer
  // than some milliseconds call it in between.
  [[nodiscard]] bool goes_on(int worker);

 private:
  int threads_;
  const TimeLimit* limit_;
  std::int64_t asked_ = 0;  // last poll by worker 0, in nanoseconds of the steady clock
  std::atomic<bool> is_over_{false};
};

}  // namespace harpe
