#include "exec/cuda/kernels/gemm/gemm_arrays.h"

#include <utility>

namespace harpe::cuda {
namespace {

StridedArray rows_of_columns(DeviceAddress address, device::Element element, std::int64_t rows,
                             std::int64_t stride, std::int64_t columns) {
  return {.address = address,
          .element_bytes = device::bytes_of(element),
          .extents = {{rows, stride}, {columns, 1}}};
}

}  // namespace

StridedArray array_a(const GemmSpec& spec, const GemmPanelSpec& panel,
                     const GemmKChunkSpec& k_chunk) {
  StridedArray a = rows_of_columns(k_chunk.a, spec.in, panel.rows, k_chunk.stride, k_chunk.k_count);
  if (spec.m_major) std::swap(a.extents.front().stride, a.extents.back().stride);
  return a;
}

StridedArray array_b(const GemmSpec& spec, const GemmPanelSpec& panel,
                     const GemmKChunkSpec& k_chunk) {
  const bool is_n_major = spec.layout == device::GemmLayout::NMajor;
  if (k_chunk.b != 0) {
    return rows_of_columns(k_chunk.b, spec.in, is_n_major ? k_chunk.k_count : spec.n, spec.b_stride,
                           is_n_major ? spec.n : k_chunk.k_count);
  }
  const std::int64_t first = panel.b_first * spec.b_stride +
                             (is_n_major ? k_chunk.k_begin * spec.b_stride : k_chunk.k_begin);
  return rows_of_columns(spec.b + static_cast<DeviceAddress>(first * device::bytes_of(spec.in)),
                         spec.in, is_n_major ? k_chunk.k_count : spec.n, spec.b_stride,
                         is_n_major ? spec.n : k_chunk.k_count);
}

StridedArray array_c(const GemmSpec& spec, const GemmPanelSpec& panel) {
  return rows_of_columns(panel.c, spec.out, panel.rows, panel.c_stride, spec.n);
}

}  // namespace harpe::cuda
