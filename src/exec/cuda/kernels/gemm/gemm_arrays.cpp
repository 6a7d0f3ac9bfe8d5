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

StridedArray array_a(const GemmSpec& spec, const GemmPanelSpec& panel, const GemmPieceSpec& piece) {
  StridedArray a = rows_of_columns(piece.a, spec.in, panel.rows, piece.stride, piece.k_count);
  if (spec.m_major) std::swap(a.extents.front().stride, a.extents.back().stride);
  return a;
}

StridedArray array_b(const GemmSpec& spec, const GemmPanelSpec& panel, const GemmPieceSpec& piece) {
  const bool is_n_major = spec.layout == device::GemmLayout::NMajor;
  if (piece.b != 0) {
    return rows_of_columns(piece.b, spec.in, is_n_major ? piece.k_count : spec.n, spec.b_stride,
                           is_n_major ? spec.n : piece.k_count);
  }
  const std::int64_t first =
      panel.b_first * spec.b_stride + (is_n_major ? piece.k_begin * spec.b_stride : piece.k_begin);
  return rows_of_columns(spec.b + static_cast<DeviceAddress>(first * device::bytes_of(spec.in)),
                         spec.in, is_n_major ? piece.k_count : spec.n, spec.b_stride,
                         is_n_major ? spec.n : piece.k_count);
}

StridedArray array_c(const GemmSpec& spec, const GemmPanelSpec& panel) {
  return rows_of_columns(panel.c, spec.out, panel.rows, panel.c_stride, spec.n);
}

}  // namespace harpe::cuda
