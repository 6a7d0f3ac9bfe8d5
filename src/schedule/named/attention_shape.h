#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "schedule/named/mesh_plan.h"
#include "support/diag.h"

namespace harpe {

struct SizedAxis {
  std::string name;
  std::int64_t size = 1;
};

using BufferNames = std::vector<std::string>;

// What a program between queries and keys has, by position in its one statement with q, k and v:
// `(o, lse) lse= attn_fwd(q, k, v)` or `(dq, dk, dv) sum= attn_bwd(q, k, v, do, lse, delta)`.
// Buffers are told apart by whether they have queries' positions or keys'.
struct AttentionShape {
  std::string nest;
  std::vector<std::string> row_nests;  // the other nests: they work on queries alone
  BufferNames by_query, by_key;        // of the whole program: whose home follows which
  BufferNames query_inputs;            // q | q, do, lse, delta
  BufferNames key_inputs;              // k, v
  BufferNames query_results;           // o, lse | dq
  BufferNames key_results;             // none | dk, dv: sums of what every query contributes
  SizedAxis batch, queries, keys, kv_heads;
  std::optional<SizedAxis> group;  // query heads of one KV head, where q has them as an axis
  bool causal = false;
};

// Errors: S603.
[[nodiscard]] Checked<AttentionShape> read_attention(const Program& program);

// A level dealt to the heads: KV heads over `kv`, the query heads inside each over `group`.
struct HeadLevels {
  MeshPlan::Level kv;
  MeshPlan::Level group;
};

// Every rank of the level gets a head, as few copies of K and V as possible. Cuts the level in the
// plan. Errors: S611 (fewer heads than ranks), S612 (the number of ranks has no fitting factors);
// the argument `alternatives` is for the caller to replace.
[[nodiscard]] Checked<HeadLevels> deal_heads(MeshPlan& plan, const MeshPlan::Level& level,
                                             const AttentionShape& shape,
                                             std::string_view schedule);

}  // namespace harpe
