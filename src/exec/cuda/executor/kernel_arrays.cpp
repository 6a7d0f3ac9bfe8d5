#include "exec/cuda/executor/kernel_arrays.h"

namespace harpe::cuda {
namespace {

using device::Element;

StridedArray rows_of_columns(DeviceAddress address, Element element, std::int64_t rows,
                             std::int64_t stride, std::int64_t columns) {
  return {.address = address,
          .element_bytes = device::bytes_of(element),
          .extents = {{rows, stride}, {columns, 1}}};
}

StridedArray heads_at(const AttentionSpec& spec, const HeadTensor& tensor, Element element,
                      const HeadSizes& sizes) {
  return {.address = tensor.address,
          .element_bytes = device::bytes_of(element),
          .extents = {{spec.batch, tensor.strides.batch},
                      {sizes.rows, tensor.strides.row},
                      {sizes.heads, tensor.strides.head},
                      {sizes.columns, 1}}};
}

Element output_element(const AttentionSpec& spec) {
  return spec.to_state ? Element::F32 : spec.element;
}

}  // namespace

StridedArray array_a(const GemmSpec& spec, const GemmPanelSpec& panel, const GemmPieceSpec& piece) {
  return rows_of_columns(piece.a, spec.in, panel.rows, piece.stride, piece.k_count);
}

StridedArray array_b(const GemmSpec& spec, const GemmPanelSpec& panel, const GemmPieceSpec& piece) {
  const bool is_n_major = spec.layout == device::GemmLayout::NMajor;
  const std::int64_t first =
      panel.b_first * spec.b_stride + (is_n_major ? piece.k_begin * spec.b_stride : piece.k_begin);
  return rows_of_columns(spec.b + static_cast<DeviceAddress>(first * device::bytes_of(spec.in)),
                         spec.in, is_n_major ? piece.k_count : spec.n, spec.b_stride,
                         is_n_major ? spec.n : piece.k_count);
}

StridedArray array_c(const GemmSpec& spec, const GemmPanelSpec& panel) {
  return rows_of_columns(panel.c, spec.out, panel.rows, panel.c_stride, spec.n);
}

StridedArray array_queries(const AttentionSpec& spec, const AttentionPanelSpec& panel) {
  return heads_at(spec, panel.queries, spec.element,
                  {.rows = panel.rows, .heads = spec.heads, .columns = spec.query_dim});
}

StridedArray array_carried(const AttentionSpec& spec, const AttentionPanelSpec& panel) {
  return heads_at(spec, panel.carried_output, Element::F32,
                  {.rows = panel.rows, .heads = spec.heads, .columns = spec.value_dim});
}

StridedArray array_output(const AttentionSpec& spec, const AttentionPanelSpec& panel) {
  return heads_at(spec, panel.output, output_element(spec),
                  {.rows = panel.rows, .heads = spec.heads, .columns = spec.value_dim});
}

StridedArray array_lse(const AttentionSpec& spec, const AttentionPanelSpec& panel) {
  return heads_at(spec, panel.lse, Element::F32,
                  {.rows = panel.rows, .heads = spec.heads, .columns = 1});
}

StridedArray array_carried_lse(const AttentionSpec& spec, const AttentionPanelSpec& panel) {
  StridedArray lse = array_lse(spec, panel);
  if (panel.carried_lse != 0) lse.address = panel.carried_lse;
  return lse;
}

StridedArray array_keys(const AttentionSpec& spec, const AttentionChunkSpec& chunk) {
  return heads_at(spec, chunk.keys, spec.element,
                  {.rows = chunk.rows, .heads = spec.kv_heads, .columns = spec.query_dim});
}

StridedArray array_values(const AttentionSpec& spec, const AttentionChunkSpec& chunk) {
  return heads_at(spec, chunk.values, spec.element,
                  {.rows = chunk.rows, .heads = spec.kv_heads, .columns = spec.value_dim});
}

}  // namespace harpe::cuda
