#pragma once

#include <vector>

#include "bench/cuda/attention_case.h"

namespace harpe::bench {

// Self-attention of 32 heads over sequences of 2,048 to 16,384, full and causal. bf16.
[[nodiscard]] std::vector<AttentionCase> attention_shapes();

// The work of one of 8 GPUs after all keys were gathered: an eighth of the queries (under a causal
// mask the last eighth), in chunks that begin with its own.
[[nodiscard]] std::vector<AttentionCase> attention_shares();

// Cuts the keys into as many chunks as there are GPUs, in the order of positions.
void cut_keys(AttentionCase& what);
// Cuts the queries into panels in the same way.
void cut_queries(AttentionCase& what);

// One query per sequence, which sees all keys.
[[nodiscard]] AttentionCase one_query(std::int64_t batch, std::int64_t keys, std::int64_t kv_heads,
                                      std::int64_t group, std::int64_t dim);
// The same for latent attention: the first 512 of 576 elements of a key are its value.
[[nodiscard]] AttentionCase one_latent_query(std::int64_t batch, std::int64_t keys,
                                             std::int64_t kv_heads, std::int64_t group);

}  // namespace harpe::bench
