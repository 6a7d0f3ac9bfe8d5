#include <algorithm>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "measure/baselines/baselines.h"
#include "measure/baselines/moves.h"

namespace harpe::library {
namespace {

using cuda::DeviceAddress;

// One rank's part.
struct Local {
  std::int64_t keys = 0;
  DeviceAddress q = 0;  // [batch, heads, columns]
  DeviceAddress k = 0;
  DeviceAddress v = 0;
  DeviceAddress o = 0;  // f32 [batch, heads, columns]
  DeviceAddress l = 0;  // f32 [batch, heads]
};

cuda::AttentionSpec spec_of(const Subject& s, const Local& at, LocalDecode kernel,
                            int multiprocessors) {
  const std::int64_t d = s.head_dim;
  cuda::AttentionSpec spec;
  spec.batch = s.batch;
  spec.heads = s.heads;
  spec.kv_heads = s.kv_heads;
  spec.query_dim = d;
  spec.value_dim = d;
  spec.element = element_of(s.dtype);
  spec.to_state = true;
  cuda::AttentionPanelSpec panel;
  panel.rows = 1;
  panel.queries = {at.q, {.batch = s.heads * d, .row = s.heads * d, .head = d}};
  panel.output = {at.o, {.batch = s.heads * d, .row = s.heads * d, .head = d}};
  panel.lse = {at.l, {.batch = s.heads, .row = s.heads, .head = 1}};
  cuda::AttentionChunkSpec chunk;
  chunk.rows = at.keys;
  const device::AttentionStrides strides{
      .batch = at.keys * s.kv_heads * d, .row = s.kv_heads * d, .head = d};
  chunk.keys = {at.k, strides};
  chunk.values = {at.v, strides};
  spec.panels = {panel};
  spec.chunks = {chunk};
  if (kernel == LocalDecode::Shares && cuda::can_decode(spec)) {
    spec.shares = cuda::choose_shares(spec, multiprocessors);
    return spec;
  }
  spec = cuda::with_groups_as_rows(std::move(spec));
  spec.parts = cuda::choose_parts(spec, multiprocessors);
  return spec;
}

Checked<Ok> add_local(const Member& member, Work& work, const Subject& s, const Local& at,
                      LocalDecode kernel) {
  const int multiprocessors = member.device.facts().multiprocessors;
  const cuda::AttentionSpec spec = spec_of(s, at, kernel, multiprocessors);
  HP_REQUIRE_OK(cuda::check(spec, multiprocessors));
  HP_TRY(Step attention, launch_step(member, spec));
  work.add_arithmetic({std::move(attention)});
  return Ok{};
}

// Gathers the ranks' states, [rank, batch, heads, columns], combines and rounds them.
Checked<Ok> add_merge(Member& member, Work& work, const Subject& s, const Local& at, int ranks,
                      DeviceAddress result) {
  const std::int64_t rows = s.batch * s.heads;
  const Elements o{.address = at.o, .count = rows * s.head_dim, .type = device::Element::F32};
  const Elements l{.address = at.l, .count = rows, .type = device::Element::F32};
  HP_TRY(const DeviceAddress all_o, work.reserve(member, ranks * rows * s.head_dim * kFloatBytes));
  HP_TRY(const DeviceAddress all_l, work.reserve(member, ranks * rows * kFloatBytes));
  work.steps.emplace_back([=, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      HP_REQUIRE_OK(member.nccl->all_gather(o, all_o, stream));
      return member.nccl->all_gather(l, all_l, stream);
    });
  });
  if (ranks > 1) {
    HP_TRY(Step merge, combine_step(member, {.o = all_o,
                                             .l = all_l,
                                             .rows = rows,
                                             .columns = s.head_dim,
                                             .count = ranks,
                                             .groups = 1}));
    work.steps.push_back(std::move(merge));
  }
  HP_TRY(Step round, round_step(member, result, all_o, rows * s.head_dim, element_of(s.dtype)));
  work.steps.push_back(std::move(round));
  return Ok{};
}

Checked<Ok> add_rank(Member& member, const Subject& s, LocalDecode kernel, int ranks,
                     BaselineParts& parts) {
  HP_TRY(const std::int64_t keys, share_of("keys", s.seq, ranks));
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  Local at;
  at.keys = keys;
  const std::int64_t kv_bytes = keys * s.kv_heads * s.head_dim * kElementBytes;
  const std::int64_t q_bytes = s.batch * s.heads * s.head_dim * kElementBytes;
  HP_TRY(at.q, work.reserve(member, q_bytes));
  HP_TRY(at.k, work.reserve(member, s.batch * kv_bytes));
  HP_TRY(at.v, work.reserve(member, s.batch * kv_bytes));
  HP_TRY(at.o, work.reserve(member, q_bytes * kFloatBytes / kElementBytes));
  HP_TRY(at.l, work.reserve(member, s.batch * s.heads * kFloatBytes));
  HP_TRY(const DeviceAddress result, work.reserve(member, q_bytes));
  HP_REQUIRE_OK(add_local(member, work, s, at, kernel));
  HP_REQUIRE_OK(add_merge(member, work, s, at, ranks, result));
  const int r = member.rank;
  const std::int64_t pitch = ranks * kv_bytes;
  parts.tensors["q"].parts.push_back({r, at.q, 0, q_bytes, q_bytes, 1});
  parts.tensors["k"].parts.push_back({r, at.k, r * kv_bytes, pitch, kv_bytes, s.batch});
  parts.tensors["v"].parts.push_back({r, at.v, r * kv_bytes, pitch, kv_bytes, s.batch});
  if (r == 0) parts.tensors["o"].parts.push_back({r, result, 0, q_bytes, q_bytes, 1});
  return Ok{};
}

}  // namespace

Checked<std::unique_ptr<Baseline>> make_decode_baseline(const std::shared_ptr<Team>& team,
                                                        const Subject& s, LocalDecode kernel) {
  BaselineParts parts;
  const std::vector<std::int64_t> shape = {s.batch, s.heads, s.head_dim};
  const std::vector<std::int64_t> kv_shape = {s.batch, s.seq, s.kv_heads, s.head_dim};
  parts.tensors["q"] = {.dtype = s.dtype, .shape = shape, .parts = {}};
  parts.tensors["k"] = {.dtype = s.dtype, .shape = kv_shape, .parts = {}};
  parts.tensors["v"] = {.dtype = s.dtype, .shape = kv_shape, .parts = {}};
  parts.tensors["o"] = {.dtype = s.dtype, .shape = shape, .parts = {}};
  for (int rank = 0; rank < team->ranks(); ++rank) {
    const auto current = team->member(rank).device.make_current();
    if (!current.ok()) return cuda::to_diag(current.error());
    HP_REQUIRE_OK(add_rank(team->member(rank), s, kernel, team->ranks(), parts));
  }
  return std::make_unique<Baseline>(team, std::move(parts));
}

}  // namespace harpe::library
