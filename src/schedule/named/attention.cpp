#include "schedule/named/attention.h"

#include <algorithm>
#include <array>

#include "schedule/named/attention_shape.h"

namespace harpe {
namespace {

constexpr std::array kAttentionSchedules = {
    NamedSchedule{"allgather", "k and v gathered once over all ranks; heads and shapes of any kind",
                  &attention_allgather},
    NamedSchedule{"ring", "k and v travel round all ranks, one block per step", &attention_ring},
    NamedSchedule{
        "zigzag_ring",
        "ring for causal masks: each rank has a block from the front and one from the back",
        &attention_zigzag_ring},
    NamedSchedule{"ulysses",
                  "positions exchanged for heads, and back; ranks share KV heads, then query heads",
                  &attention_ulysses},
    NamedSchedule{"usp",
                  "ring over the first mesh axis, ulysses over the others; one axis of P ranks is "
                  "P/u x u with u the largest divisor up to its root that the heads allow (8: 4x2)",
                  &attention_usp},
    NamedSchedule{"double_ring",
                  "ring of rings: k and v hop along the first mesh axis once per ring over the "
                  "others; one axis of P ranks is u x P/u (8: 2x4)",
                  &attention_double_ring},
    NamedSchedule{
        "hybrid",
        "k and v gathered over the first mesh axis, then a ring over the others; one axis "
        "of P ranks is u x P/u (8: 2x4)",
        &attention_hybrid},
    NamedSchedule{"q_rotation", "q and the partial (o, lse) travel round, k and v stay",
                  &attention_q_rotation},
    NamedSchedule{
        "tree",
        "k and v stay, q is everywhere; partial (o, lse) are combined at the heads' owners, "
        "or everywhere",
        &attention_tree},
    NamedSchedule{"push", "k and v pushed in chunks to all ranks; one kernel waits chunk by chunk",
                  &attention_push},
    NamedSchedule{
        "zigzag_push",
        "push for causal masks: each rank has a block from the front and one from the back",
        &attention_zigzag_push},
    NamedSchedule{"stream", "k and v pushed to all ranks; a kernel for each source's",
                  &attention_stream},
    NamedSchedule{
        "zigzag_stream",
        "stream for causal masks: each rank has a block from the front and one from the back",
        &attention_zigzag_stream},
    NamedSchedule{"mercury_novel8",
                  "q and (o, lse) travel along the second mesh axis, k and v along the first; one "
                  "axis of P ranks is P/u x u (8: 4x2)",
                  &attention_mercury_novel8},
    NamedSchedule{
        "mercury_best_latency",
        "heads on the first mesh axis, a pipelined exchange of positions and heads on the "
        "second, q and (o, lse) travel along the third; fewer axes are factored (8: 2x2x2)",
        &attention_mercury_best_latency},
};

constexpr std::array kBackwardSchedules = {
    NamedSchedule{"allgather",
                  "k and v gathered once over all ranks, partial dk and dv reduced and scattered; "
                  "heads and shapes of any kind",
                  &attention_allgather},
    NamedSchedule{"ring", "k and v travel round all ranks, one block per step, dk and dv with them",
                  &attention_ring},
    NamedSchedule{
        "zigzag_ring",
        "ring for causal masks: each rank has a block from the front and one from the back",
        &attention_zigzag_ring},
    NamedSchedule{"ulysses",
                  "positions exchanged for heads, gradients back; ranks share KV heads, then query "
                  "heads",
                  &attention_ulysses},
    NamedSchedule{"usp",
                  "ring over the first mesh axis, ulysses over the others; one axis of P ranks is "
                  "P/u x u with u the largest divisor up to its root that the heads allow (8: 4x2)",
                  &attention_usp},
    NamedSchedule{"double_ring",
                  "ring of rings: k, v, dk and dv hop along the first mesh axis once per ring over "
                  "the others; one axis of P ranks is u x P/u (8: 2x4)",
                  &attention_double_ring},
    NamedSchedule{
        "hybrid",
        "k and v gathered and dk and dv reduced over the first mesh axis, a ring over the "
        "others; one axis of P ranks is u x P/u (8: 2x4)",
        &attention_hybrid},
    NamedSchedule{"q_rotation",
                  "q, do, lse, delta and dq travel round, k and v stay with their gradients",
                  &attention_q_rotation},
};

}  // namespace

std::span<const NamedSchedule> attention_schedules() { return kAttentionSchedules; }
std::span<const NamedSchedule> attention_backward_schedules() { return kBackwardSchedules; }

Checked<Script> choose_attention(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  const std::int64_t ranks = MeshPlan(mesh).all().ranks;
  if (shape.queries.size < ranks) return attention_tree(program, mesh);
  return choose_attention_backward(program, mesh);
}

Checked<Script> choose_attention_backward(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  const std::int64_t ranks = MeshPlan(mesh).all().ranks;
  if (shape.causal && std::min(shape.queries.size, shape.keys.size) >= 2 * ranks) {
    return attention_zigzag_ring(program, mesh);
  }
  return attention_allgather(program, mesh);
}

}  // namespace harpe
