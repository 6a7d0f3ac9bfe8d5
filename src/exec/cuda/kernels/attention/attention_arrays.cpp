#include "exec/cuda/kernels/attention/attention_arrays.h"

namespace harpe::cuda {
namespace {

using device::Element;

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

HeadTensor tensor_at(const StridedArray& array) {
  return {.address = array.address,
          .strides = {.batch = array.extents[0].stride,
                      .row = array.extents[1].stride,
                      .head = array.extents[2].stride}};
}

std::vector<StridedArray> arrays_tables(const AttentionSpec& spec) {
  constexpr std::int64_t kEntryBytes = 4;
  std::vector<StridedArray> arrays;
  if (!spec.tables) return arrays;
  const KeyTables& tables = *spec.tables;
  if (tables.lengths != 0) {
    arrays.push_back({.address = tables.lengths,
                      .element_bytes = kEntryBytes,
                      .extents = {{spec.batch, tables.length_stride}}});
  }
  if (tables.pages != 0) {
    arrays.push_back(
        {.address = tables.pages,
         .element_bytes = kEntryBytes,
         .extents = {{spec.batch, tables.batch_stride}, {tables.page_count, tables.page_stride}}});
  }
  return arrays;
}

}  // namespace harpe::cuda
