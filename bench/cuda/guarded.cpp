#include "bench/cuda/guarded.h"

namespace harpe::bench {

GuardedRows::GuardedRows(const Gpu& gpu, std::int64_t rows, std::int64_t columns,
                         std::int64_t stride, Element element)
    : gpu_(&gpu),
      rows_(rows),
      columns_(columns),
      stride_(stride),
      element_(element),
      memory_(gpu.memory(2 * kRoom + rows * stride * device::bytes_of(element))) {}

Rows GuardedRows::rows() const {
  return {.address = at<void>(address()),
          .rows = rows_,
          .columns = columns_,
          .stride = stride_,
          .element = element_};
}

void GuardedRows::poison(CUstream stream) const {
  gpu_->fill_bytes(memory_.address(), kPoison, memory_.bytes(), stream);
}

void GuardedRows::fill(std::uint64_t seed, Distribution distribution, CUstream stream) const {
  fill_random(*gpu_, {.to = rows(), .seed = seed, .distribution = distribution, .shift = 0},
              stream);
}

void GuardedRows::check(const Gpu& on, Verdict* verdict, CUstream stream) const {
  check_guard(on,
              {.begin = at<const std::uint8_t>(memory_.address()),
               .bytes = memory_.bytes(),
               .offset = kRoom,
               .rows = rows_,
               .row_bytes = row_bytes(),
               .stride_bytes = stride_bytes(),
               .pattern = kPoison,
               .verdict = verdict},
              stream);
}

}  // namespace harpe::bench
