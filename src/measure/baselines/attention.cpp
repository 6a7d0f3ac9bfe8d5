#include "exec/cuda/kernels/attention/attention.h"
#include "measure/baselines/exchange.h"

namespace harpe::library {
namespace {

using cuda::DeviceAddress;

Diag refuse_attention(const std::string& reason) {
  return make_diag(DiagCode::G081, {{"what", "attention"}, {"reason", reason}});
}

cuda::HeadTensor packed(DeviceAddress address, std::int64_t rows, std::int64_t heads,
                        std::int64_t columns) {
  return {.address = address,
          .strides = {.batch = rows * heads * columns, .row = heads * columns, .head = columns}};
}

// Harpe's kernel for the shape that cuDNN gets; it computes only the result, like cuDNN's.
cuda::AttentionSpec spec_of(const AttentionShape& s, const AttentionAddresses& at) {
  cuda::AttentionSpec spec;
  spec.batch = s.batch;
  spec.heads = s.heads;
  spec.kv_heads = s.kv_heads;
  spec.query_dim = s.columns;
  spec.value_dim = s.v_columns;
  spec.element = s.in;
  spec.causal = s.causal;
  cuda::AttentionPanelSpec panel;
  panel.rows = s.rows;
  panel.position = s.keys - s.rows;
  panel.queries = packed(at.q, s.rows, s.heads, s.columns);
  panel.output = packed(at.o, s.rows, s.heads, s.v_columns);
  cuda::AttentionChunkSpec chunk;
  chunk.rows = s.keys;
  chunk.keys = packed(at.k, s.keys, s.kv_heads, s.columns);
  chunk.values = packed(at.v, s.keys, s.kv_heads, s.v_columns);
  spec.panels = {panel};
  spec.chunks = {chunk};
  return spec;
}

// Both cuDNN's kernel, if there is one, and Harpe's: the faster one counts.
Checked<Ok> add_attention(const Member& member, Work& work, const AttentionShape& shape,
                          const AttentionAddresses& at) {
  std::vector<Step> ways;
  if (member.attention->ok()) {
    auto made = (*member.attention)->prepare(shape, false);
    if (made.ok()) {
      const std::shared_ptr<const LibraryAttention> kernel = std::move(made).value();
      HP_TRY(const DeviceAddress space,
             work.reserve(member, std::max<std::int64_t>(kernel->workspace_bytes(), 512)));
      ways.emplace_back([kernel, at, space](CUstream stream) -> Checked<Ok> {
        if (kernel->launch(at, space, stream)) return Ok{};
        return refused("execute", "cuDNN");
      });
    }
  }
  const cuda::AttentionSpec spec = spec_of(shape, at);
  const Checked<Ok> can = cuda::check(spec, member.device.facts().multiprocessors);
  if (can.ok()) {
    HP_TRY(Step ours, launch_step(member, spec));
    ways.push_back(std::move(ours));
  }
  if (ways.empty()) return can.error();
  work.add_arithmetic(std::move(ways));
  return Ok{};
}

Checked<Ok> add_ulysses(Member& member, const Subject& s, const Shares& shares,
                        BaselineParts& parts) {
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  HP_TRY(const Exchanged q, reserve_exchanged(member, work, s, shares, shares.heads));
  HP_TRY(const Exchanged k, reserve_exchanged(member, work, s, shares, shares.kv_heads));
  HP_TRY(const Exchanged v, reserve_exchanged(member, work, s, shares, shares.kv_heads));
  HP_TRY(Exchanged o, reserve_exchanged(member, work, s, shares, shares.heads));
  if (s.batch == 1) o.whole = o.sent;
  const device::Element element = element_of(s.dtype);
  for (const Exchanged& t : {q, k, v}) HP_REQUIRE_OK(add_move(member, work, t.by_rank(false)));
  work.steps.emplace_back([=, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : {q, k, v}) HP_REQUIRE_OK(exchange(member, t, stream));
      return Ok{};
    });
  });
  if (s.batch > 1) {
    for (const Exchanged& t : {q, k, v}) HP_REQUIRE_OK(add_move(member, work, t.by_entry(false)));
  }
  const AttentionShape shape{.batch = s.batch,
                             .rows = s.seq,
                             .keys = s.seq,
                             .heads = shares.heads,
                             .kv_heads = shares.kv_heads,
                             .columns = s.head_dim,
                             .v_columns = s.head_dim,
                             .causal = s.causal,
                             .in = element};
  HP_REQUIRE_OK(add_attention(member, work, shape,
                              {.q = q.whole, .k = k.whole, .v = v.whole, .o = o.whole, .lse = 0}));
  if (s.batch > 1) HP_REQUIRE_OK(add_move(member, work, o.by_entry(true)));
  work.steps.emplace_back([=, &member](CUstream stream) { return exchange(member, o, stream); });
  HP_REQUIRE_OK(add_move(member, work, o.by_rank(true)));
  add_part(parts, "q", s, member.rank, q.own, shares.rows, s.heads);
  add_part(parts, "k", s, member.rank, k.own, shares.rows, s.kv_heads);
  add_part(parts, "v", s, member.rank, v.own, shares.rows, s.kv_heads);
  add_part(parts, "o", s, member.rank, o.own, shares.rows, s.heads);
  return Ok{};
}

Checked<Ok> add_gathered(Member& member, const Subject& s, const Shares& shares,
                         BaselineParts& parts) {
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  // Received by rank, then by batch entry.
  HP_TRY(const Exchanged k, reserve_exchanged(member, work, s, shares, s.kv_heads));
  HP_TRY(const Exchanged v, reserve_exchanged(member, work, s, shares, s.kv_heads));
  const std::int64_t q_bytes = s.batch * shares.rows * s.heads * s.head_dim * kElementBytes;
  HP_TRY(const DeviceAddress q, work.reserve(member, q_bytes));
  HP_TRY(const DeviceAddress o, work.reserve(member, q_bytes));
  const device::Element element = element_of(s.dtype);
  work.steps.emplace_back([=, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : {k, v}) {
        HP_REQUIRE_OK(member.nccl->all_gather(
            {.address = t.own, .count = t.count(), .type = t.type}, t.received, stream));
      }
      return Ok{};
    });
  });
  if (s.batch > 1) {
    for (const Exchanged& t : {k, v}) HP_REQUIRE_OK(add_move(member, work, t.by_entry(false)));
  }
  AttentionShape shape{.batch = s.batch,
                       .rows = shares.rows,
                       .keys = s.causal ? (member.rank + 1) * shares.rows : s.seq,
                       .heads = s.heads,
                       .kv_heads = s.kv_heads,
                       .columns = s.head_dim,
                       .v_columns = s.head_dim,
                       .causal = s.causal,
                       .in = element};
  HP_REQUIRE_OK(
      add_attention(member, work, shape, {.q = q, .k = k.whole, .v = v.whole, .o = o, .lse = 0}));
  add_part(parts, "q", s, member.rank, q, shares.rows, s.heads);
  add_part(parts, "k", s, member.rank, k.own, shares.rows, s.kv_heads);
  add_part(parts, "v", s, member.rank, v.own, shares.rows, s.kv_heads);
  add_part(parts, "o", s, member.rank, o, shares.rows, s.heads);
  return Ok{};
}

Checked<std::unique_ptr<Baseline>> make(const std::shared_ptr<Team>& team, const Subject& s,
                                        const Shares& shares, AddRank add) {
  BaselineParts parts;
  const std::vector<std::int64_t> shape = {s.batch, s.seq, s.heads, s.head_dim};
  const std::vector<std::int64_t> kv_shape = {s.batch, s.seq, s.kv_heads, s.head_dim};
  for (const char* name : {"q", "o"}) parts.tensors[name] = {s.dtype, shape, {}};
  for (const char* name : {"k", "v"}) parts.tensors[name] = {s.dtype, kv_shape, {}};
  return make_by_rank(team, s, shares, std::move(parts), add);
}

}  // namespace

Checked<std::unique_ptr<Baseline>> make_ulysses_baseline(const std::shared_ptr<Team>& team,
                                                         const Subject& subject) {
  HP_TRY(const Shares shares, share_heads(subject, team->ranks()));
  return make(team, subject, shares, add_ulysses);
}

Checked<std::unique_ptr<Baseline>> make_gathered_baseline(const std::shared_ptr<Team>& team,
                                                          const Subject& subject) {
  if (subject.causal && subject.batch > 1) {
    return refuse_attention("causal ranks read keys of unequal lengths, of one sequence alone");
  }
  HP_TRY(const Shares shares, share_positions(subject, team->ranks()));
  return make(team, subject, shares, add_gathered);
}

}  // namespace harpe::library
