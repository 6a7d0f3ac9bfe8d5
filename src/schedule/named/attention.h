#pragma once

#include <span>

#include "schedule/named/registry.h"

namespace harpe {

// Default homes of all attention schedules: q, o, lse and their gradients by query positions, k, v
// and their gradients by key positions, over all mesh axes, major first.

// One level: all mesh axes as one.
Checked<Script> attention_ring(const Program& program, const Mesh& mesh);
Checked<Script> attention_zigzag_ring(const Program& program, const Mesh& mesh);
Checked<Script> attention_allgather(const Program& program, const Mesh& mesh);
// One kernel per rank, which waits for each chunk of k and v.
Checked<Script> attention_push(const Program& program, const Mesh& mesh);
Checked<Script> attention_zigzag_push(const Program& program, const Mesh& mesh);
// One kernel for each source of k and v.
Checked<Script> attention_stream(const Program& program, const Mesh& mesh);
Checked<Script> attention_zigzag_stream(const Program& program, const Mesh& mesh);
Checked<Script> attention_q_rotation(const Program& program, const Mesh& mesh);
Checked<Script> attention_ulysses(const Program& program, const Mesh& mesh);
// q is replicated; o and lse are by heads, or replicated if there are fewer heads than ranks.
Checked<Script> attention_tree(const Program& program, const Mesh& mesh);

// Two levels: the first mesh axis, and the others as one; a single axis is factored.
Checked<Script> attention_double_ring(const Program& program, const Mesh& mesh);
Checked<Script> attention_hybrid(const Program& program, const Mesh& mesh);
Checked<Script> attention_usp(const Program& program, const Mesh& mesh);
Checked<Script> attention_mercury_novel8(const Program& program, const Mesh& mesh);
// Three levels. q, o, lse and k, v are placed by heads and positions: the first level shards inputs
// over heads.
Checked<Script> attention_mercury_best_latency(const Program& program, const Mesh& mesh);

[[nodiscard]] std::span<const NamedSchedule> attention_schedules();
// The generators that place every buffer: the leaf's contributions to k's and v's gradients then
// move with their blocks.
[[nodiscard]] std::span<const NamedSchedule> attention_backward_schedules();

[[nodiscard]] Checked<Script> choose_attention(const Program& program, const Mesh& mesh);
[[nodiscard]] Checked<Script> choose_attention_backward(const Program& program, const Mesh& mesh);

}  // namespace harpe
