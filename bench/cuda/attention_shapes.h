#pragma once

#include <vector>

#include "bench/cuda/attention_case.h"

namespace harpe::bench {

// Self-attention of 32 heads over sequences of 2,048 to 16,384, full and causal. bf16.
[[nodiscard]] std::vector<AttentionCase> attention_shapes();

// What one of 8 GPUs computes once the keys of all were gathered: an eighth of the queries, where
// causal the last one, in chunks that begin with its own.
[[nodiscard]] std::vector<AttentionCase> attention_shares();

// As many chunks of keys as there are GPUs, in the order of their positions.
void cut_keys(AttentionCase& what);
// Likewise panels of queries.
void cut_queries(AttentionCase& what);

// One query a sequence, which sees all keys.
[[nodiscard]] AttentionCase one_query(std::int64_t batch, std::int64_t keys, std::int64_t kv_heads,
                                      std::int64_t group, std::int64_t dim);

}  // namespace harpe::bench
