#pragma once

#include "bench/cuda/gpu.h"
#include "bench/cuda/kernels.h"

namespace harpe::bench {

// Rows of elements in memory of their own, with room before, behind and between them: what the room
// holds is poison, for inputs and outputs alike, so that reading or writing it shows.
class GuardedRows {
 public:
  GuardedRows(const Gpu& gpu, std::int64_t rows, std::int64_t columns, std::int64_t stride,
              Element element);

  [[nodiscard]] Address address() const { return memory_.address() + kRoom; }
  [[nodiscard]] Address row(std::int64_t index) const {
    return address() + static_cast<Address>(index * stride_bytes());
  }
  [[nodiscard]] Address cell(std::int64_t index, std::int64_t column) const {
    return row(index) + static_cast<Address>(column * device::bytes_of(element_));
  }
  [[nodiscard]] Rows rows() const;
  [[nodiscard]] std::int64_t stride() const { return stride_; }
  [[nodiscard]] std::int64_t stride_bytes() const { return stride_ * device::bytes_of(element_); }
  [[nodiscard]] std::int64_t row_bytes() const { return columns_ * device::bytes_of(element_); }
  [[nodiscard]] std::int64_t count() const { return rows_; }

  // Every byte 0xff: NaN in each type.
  void poison(CUstream stream) const;
  // Fresh values in the rows, the room untouched.
  void fill(std::uint64_t seed, Distribution distribution, CUstream stream) const;
  // By a kernel on `on`, whose stream it is.
  void check(const Gpu& on, Verdict* verdict, CUstream stream) const;

 private:
  static constexpr std::int64_t kRoom = 4096;
  static constexpr std::uint8_t kPoison = 0xff;

  const Gpu* gpu_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t stride_;
  Element element_;
  cuda::DeviceMemory memory_;
};

}  // namespace harpe::bench
