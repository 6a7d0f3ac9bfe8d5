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

// The structure of a program between queries and keys, found by position in its one statement with
// q, k and v: `(o, lse) lse= attn_fwd(q, k, v)` or `(dq, dk, dv) sum= attn_bwd(q, k, v, do, lse,
// delta)`. Buffers are classified by whether they have the queries' positions or the keys'.
struct AttentionShape {
  std::string nest;
  std::vector<std::string> row_nests;  // the other nests, which work on queries only
  BufferNames by_query, by_key;        // of the whole program: buffers placed by queries, by keys
  BufferNames query_inputs;            // q | q, do, lse, delta
  BufferNames key_inputs;              // k, v
  BufferNames query_results;           // o, lse | dq
  BufferNames key_results;             // none | dk, dv: sums over all queries
  SizedAxis batch, queries, keys, kv_heads;
  std::optional<SizedAxis> group;  // query heads per KV head, if q has them as an axis
  bool causal = false;
};

// Errors: S603.
[[nodiscard]] Checked<AttentionShape> read_attention(const Program& program);

// The ranks of a level divided over heads: KV heads over `kv`, the query heads of each over
// `group`.
struct HeadLevels {
  MeshPlan::Level kv;
  MeshPlan::Level group;
};

// Gives every rank of the level a head, with as few copies of K and V as possible. Cuts the level
// in the plan. Errors: S611 (fewer heads than ranks), S612 (the number of ranks has no fitting
// factors); the caller replaces the argument `alternatives`.
[[nodiscard]] Checked<HeadLevels> deal_heads(MeshPlan& plan, const MeshPlan::Level& level,
                                             const AttentionShape& shape,
                                             std::string_view schedule);

}  // namespace harpe
