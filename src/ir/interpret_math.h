#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ir/tensor.h"

namespace harpe {

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

// c[m, n] += a[m, k] * b[k, n]. An element's sum is a function of its row of a and its column of b
// alone, and cutting k at multiples of kSumUnit does not change it.
constexpr std::int64_t kSumUnit = 4;
void multiply_add(const Panel& a, const Panel& b, const Panel& c, std::int64_t m, std::int64_t n,
                  std::int64_t k);

// Calls run(worker, item) once for every item in 0 .. items, on up to `threads` threads of its own,
// worker < threads being unique among the calls that run at the same time. `run` must not throw.
void parallel_for(int threads, std::int64_t items,
                  const std::function<void(int worker, std::int64_t item)>& run);

}  // namespace harpe
