#include "exec/cuda/kernels/attention/cudnn_shape.h"

#include <algorithm>
#include <string>

namespace harpe::library {

Result<AttentionShape, Missing> shape_of(const cuda::AttentionSpec& spec) {
  if (spec.carried) return Missing{"it goes on with a state, and cuDNN begins anew"};
  if (spec.to_state) return Missing{"it leaves a state in f32, and cuDNN rounds its results"};
  if (spec.panels.size() != 1 || spec.chunks.size() != 1) {
    return Missing{"it has several blocks of queries or keys"};
  }
  const cuda::AttentionPanelSpec& panel = spec.panels.front();
  const cuda::AttentionChunkSpec& chunk = spec.chunks.front();
  AttentionShape shape{.batch = spec.batch,
                       .rows = panel.rows,
                       .keys = chunk.rows,
                       .heads = spec.heads,
                       .kv_heads = spec.kv_heads,
                       .columns = spec.query_dim,
                       .v_columns = spec.value_dim,
                       .causal = spec.causal,
                       .in = spec.element,
                       .window = spec.window,
                       .scale = spec.scale};
  shape.layout = {.q = panel.queries.strides,
                  .k = chunk.keys.strides,
                  .v = chunk.values.strides,
                  .o = panel.output.strides,
                  .lse = panel.lse.strides};
  if (!spec.causal) return shape;
  const std::int64_t lead = panel.position - chunk.position;
  if (lead < 0) return Missing{"its first queries see no key"};
  shape.keys = std::min(shape.keys, lead + shape.rows);
  shape.from_first = lead == 0;
  if (!shape.from_first && shape.keys != lead + shape.rows) {
    return Missing{"its last " + std::to_string(lead + shape.rows - shape.keys) +
                   " queries see all keys, the others not"};
  }
  return shape;
}

}  // namespace harpe::library
