#pragma once

#include <span>

#include "schedule/named/registry.h"

namespace harpe {

// Homes of all attention schedules unless said otherwise: q, o, lse and their gradients by query
// positions, k, v and theirs by key positions, every mesh axis used, major first.

// One level: all mesh axes seen as one.
Checked<Script> attention_ring(const Program& program, const Mesh& mesh);
Checked<Script> attention_zigzag_ring(const Program& program, const Mesh& mesh);
Checked<Script> attention_allgather(const Program& program, const Mesh& mesh);
// One kernel per rank, which waits for k and v chunk by chunk.
Checked<Script> attention_push(const Program& program, const Mesh& mesh);
Checked<Script> attention_zigzag_push(const Program& program, const Mesh& mesh);
// One kernel for each source of k and v.
Checked<Script> attention_stream(const Program& program, const Mesh& mesh);
Checked<Script> attention_zigzag_stream(const Program& program, const Mesh& mesh);
Checked<Script> attention_q_rotation(const Program& program, const Mesh& mesh);
Checked<Script> attention_ulysses(const Program& program, const Mesh& mesh);
// q replicated, o and lse by heads, or replicated where there are fewer heads than ranks.
Checked<Script> attention_tree(const Program& program, const Mesh& mesh);

// Two levels: the first mesh axis and the others; one axis is factored.
Checked<Script> attention_double_ring(const Program& program, const Mesh& mesh);
Checked<Script> attention_hybrid(const Program& program, const Mesh& mesh);
Checked<Script> attention_usp(const Program& program, const Mesh& mesh);
Checked<Script> attention_mercury_novel8(const Program& program, const Mesh& mesh);
// Three levels. q, o, lse and k, v by heads and positions: inputs are sharded over heads on the
// first.
Checked<Script> attention_mercury_best_latency(const Program& program, const Mesh& mesh);

[[nodiscard]] std::span<const NamedSchedule> attention_schedules();
// The same generators where every buffer has a place: what the leaf adds to k's and v's blocks
// leaves with them.
[[nodiscard]] std::span<const NamedSchedule> attention_backward_schedules();

[[nodiscard]] Checked<Script> choose_attention(const Program& program, const Mesh& mesh);
[[nodiscard]] Checked<Script> choose_attention_backward(const Program& program, const Mesh& mesh);

}  // namespace harpe
