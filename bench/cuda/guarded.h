#pragma once

#include "bench/cuda/gpu.h"
#include "bench/cuda/kernels.h"

namespace harpe::bench {

// Rows of elements in separate memory, with poison before, after and between them, for inputs and
// outputs alike. So reading or writing outside the rows shows.
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

  // Sets every byte to 0xff, which is NaN in each type.
  void poison(CUstream stream) const;
  // Sets new values in the rows; keeps the poison.
  void fill(std::uint64_t seed, Distribution distribution, CUstream stream) const;
  // Checks the poison with a kernel on `on`, in a stream of `on`.
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
