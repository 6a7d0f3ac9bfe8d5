#include <algorithm>

#include "measure/baselines/exchange.h"

namespace harpe::library {
namespace {

using cuda::DeviceAddress;

Diag refuse_backward(const std::string& reason) {
  return make_diag(DiagCode::G081, {{"what", "attention backward"}, {"reason", reason}});
}

// cuDNN's default kernel, whose order of additions may vary between runs.
Checked<Ok> add_backward(const Member& member, Work& work, const AttentionShape& shape,
                         const BackwardAddresses& at) {
  if (!member.attention->ok()) return refuse_backward(member.attention->error().reason);
  auto made = (*member.attention)->prepare_backward(shape, false);
  if (!made.ok()) return refuse_backward(made.error().reason);
  const std::shared_ptr<const LibraryBackward> kernel = std::move(made).value();
  HP_TRY(const DeviceAddress space,
         work.reserve(member, std::max<std::int64_t>(kernel->workspace_bytes(), 512)));
  work.add_arithmetic({[kernel, at, space](CUstream stream) -> Checked<Ok> {
    if (kernel->launch(at, space, stream)) return Ok{};
    return refused("execute", "cuDNN");
  }});
  return Ok{};
}

AttentionShape shape_for(const Subject& s) {
  return {.batch = s.batch,
          .rows = s.seq,
          .keys = s.seq,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .columns = s.head_dim,
          .v_columns = s.head_dim,
          .causal = s.causal,
          .in = element_of(s.dtype)};
}

// [batch, heads, positions] f32; each rank holds some of the positions.
void add_sums_part(BaselineParts& parts, const Subject& s, int rank, DeviceAddress address,
                   std::int64_t rows) {
  const std::int64_t bytes = rows * kFloatBytes;
  parts.tensors["lse"].parts.push_back(
      {rank, address, rank * bytes, s.seq * kFloatBytes, bytes, s.batch * s.heads});
}

// lse; each rank sends the sums of its positions by heads.
Checked<Exchanged> reserve_sums(const Member& member, Work& work, const Subject& s,
                                const Shares& shares) {
  Exchanged t{.batch = s.batch,
              .rows = 1,
              .piece = shares.heads * shares.rows * kFloatBytes,
              .ranks = shares.ranks,
              .type = device::Element::F32};
  HP_TRY(t.own, work.reserve(member, t.bytes()));
  t.sent = t.own;  // already sorted by rank
  if (s.batch > 1) {
    HP_TRY(t.sent, work.reserve(member, t.bytes()));
  }
  HP_TRY(t.received, work.reserve(member, t.bytes()));
  HP_TRY(t.whole, work.reserve(member, t.bytes()));
  return t;
}

// Sends q, k, v and lse to the ranks of their heads, in one group, and puts them in order.
Checked<Ok> add_sends(Member& member, Work& work, const std::vector<Exchanged>& tensors,
                      const Exchanged& lse, std::int64_t heads) {
  for (const Exchanged& t : tensors) HP_REQUIRE_OK(add_move(member, work, t.by_rank(false)));
  if (lse.sent != lse.own) HP_REQUIRE_OK(add_move(member, work, lse.by_rank(false)));
  work.steps.emplace_back([tensors, lse, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : tensors) HP_REQUIRE_OK(exchange(member, t, stream));
      return exchange(member, lse, stream);
    });
  });
  for (const Exchanged& t : tensors) {
    if (t.whole != t.received) HP_REQUIRE_OK(add_move(member, work, t.by_entry(false)));
  }
  return add_move(member, work, by_head(lse, heads));
}

// Sends gradients back.
Checked<Ok> add_returns(Member& member, Work& work, const std::vector<Exchanged>& gradients) {
  for (const Exchanged& t : gradients) {
    if (t.whole != t.sent) HP_REQUIRE_OK(add_move(member, work, t.by_entry(true)));
  }
  work.steps.emplace_back([gradients, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : gradients) HP_REQUIRE_OK(exchange(member, t, stream));
      return Ok{};
    });
  });
  for (const Exchanged& t : gradients) HP_REQUIRE_OK(add_move(member, work, t.by_rank(true)));
  return Ok{};
}

// A gradient is computed in its send buffer, unless batch entries are separate.
Checked<Exchanged> reserve_backward(const Member& member, Work& work, const Subject& s,
                                    const Shares& shares, std::int64_t heads) {
  HP_TRY(Exchanged t, reserve_exchanged(member, work, s, shares, heads));
  if (s.batch == 1) t.whole = t.sent;
  return t;
}

Checked<Ok> add_ulysses_backward(Member& member, const Subject& s, const Shares& shares,
                                 BaselineParts& parts) {
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  const std::int64_t heads = shares.heads;
  const std::int64_t kv_heads = shares.kv_heads;
  HP_TRY(const Exchanged q, reserve_exchanged(member, work, s, shares, heads));
  HP_TRY(const Exchanged k, reserve_exchanged(member, work, s, shares, kv_heads));
  HP_TRY(const Exchanged v, reserve_exchanged(member, work, s, shares, kv_heads));
  HP_TRY(const Exchanged o, reserve_exchanged(member, work, s, shares, heads));
  HP_TRY(const Exchanged d_o, reserve_exchanged(member, work, s, shares, heads));
  HP_TRY(const Exchanged lse, reserve_sums(member, work, s, shares));
  HP_TRY(const Exchanged dq, reserve_backward(member, work, s, shares, heads));
  HP_TRY(const Exchanged dk, reserve_backward(member, work, s, shares, kv_heads));
  HP_TRY(const Exchanged dv, reserve_backward(member, work, s, shares, kv_heads));
  HP_REQUIRE_OK(add_sends(member, work, {q, k, v, o, d_o}, lse, heads));
  AttentionShape shape = shape_for(s);
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  const AttentionAddresses inputs{
      .q = q.whole, .k = k.whole, .v = v.whole, .o = o.whole, .lse = lse.whole};
  HP_REQUIRE_OK(add_backward(
      member, work, shape,
      {.inputs = inputs, .d_o = d_o.whole, .dq = dq.whole, .dk = dk.whole, .dv = dv.whole}));
  HP_REQUIRE_OK(add_returns(member, work, {dq, dk, dv}));
  const int r = member.rank;
  add_part(parts, "q", s, r, q.own, shares.rows, s.heads);
  add_part(parts, "k", s, r, k.own, shares.rows, s.kv_heads);
  add_part(parts, "v", s, r, v.own, shares.rows, s.kv_heads);
  add_part(parts, "o", s, r, o.own, shares.rows, s.heads);
  add_part(parts, "do", s, r, d_o.own, shares.rows, s.heads);
  add_sums_part(parts, s, r, lse.own, shares.rows);
  add_part(parts, "dq", s, r, dq.own, shares.rows, s.heads);
  add_part(parts, "dk", s, r, dk.own, shares.rows, s.kv_heads);
  add_part(parts, "dv", s, r, dv.own, shares.rows, s.kv_heads);
  return Ok{};
}

// k, v or one of their gradients; reserves nothing.
Exchanged keys_of(const Subject& s, const Shares& shares) {
  return {.batch = s.batch,
          .rows = shares.rows,
          .piece = s.kv_heads * s.head_dim * kElementBytes,
          .ranks = shares.ranks,
          .type = element_of(s.dtype)};
}

// Gathers all ranks' parts, by rank, then by batch entry.
Checked<Exchanged> reserve_gathered(const Member& member, Work& work, const Subject& s,
                                    const Shares& shares) {
  Exchanged t = keys_of(s, shares);
  HP_TRY(t.own, work.reserve(member, t.part()));
  HP_TRY(t.received, work.reserve(member, t.bytes()));
  t.whole = t.received;
  if (s.batch > 1) {
    HP_TRY(t.whole, work.reserve(member, t.bytes()));
  }
  return t;
}

// Sums of all ranks' gradients. They stay zero for keys that no query of the rank sees.
Checked<Exchanged> reserve_summed(const Member& member, Work& work, const Subject& s,
                                  const Shares& shares) {
  Exchanged t = keys_of(s, shares);
  HP_TRY(t.own, work.reserve(member, t.part()));
  HP_TRY(t.sent, work.reserve_zeros(member, t.bytes()));
  t.whole = t.sent;
  if (s.batch > 1) {
    HP_TRY(t.whole, work.reserve(member, t.bytes()));
  }
  return t;
}

Checked<Ok> add_reduction(Member& member, Work& work, const std::vector<Exchanged>& gradients) {
  for (const Exchanged& t : gradients) {
    if (t.whole != t.sent) HP_REQUIRE_OK(add_move(member, work, t.by_entry(true)));
  }
  work.steps.emplace_back([gradients, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : gradients) {
        HP_REQUIRE_OK(member.nccl->reduce_scatter(
            t.sent, {.address = t.own, .count = t.count(), .type = t.type}, stream));
      }
      return Ok{};
    });
  });
  return Ok{};
}

Checked<Ok> add_gather(Member& member, Work& work, const std::vector<Exchanged>& tensors) {
  work.steps.emplace_back([tensors, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : tensors) {
        HP_REQUIRE_OK(member.nccl->all_gather(
            {.address = t.own, .count = t.count(), .type = t.type}, t.received, stream));
      }
      return Ok{};
    });
  });
  for (const Exchanged& t : tensors) {
    if (t.whole != t.received) HP_REQUIRE_OK(add_move(member, work, t.by_entry(false)));
  }
  return Ok{};
}

Checked<Ok> add_gathered_backward(Member& member, const Subject& s, const Shares& shares,
                                  BaselineParts& parts) {
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  HP_TRY(const Exchanged k, reserve_gathered(member, work, s, shares));
  HP_TRY(const Exchanged v, reserve_gathered(member, work, s, shares));
  HP_TRY(const Exchanged dk, reserve_summed(member, work, s, shares));
  HP_TRY(const Exchanged dv, reserve_summed(member, work, s, shares));
  const std::int64_t sums = s.batch * s.heads * shares.rows;
  AttentionAddresses inputs{.k = k.whole, .v = v.whole};
  BackwardAddresses at;
  for (DeviceAddress* const address : {&inputs.q, &inputs.o, &at.d_o, &at.dq}) {
    HP_TRY(*address, work.reserve(member, sums * s.head_dim * kElementBytes));
  }
  HP_TRY(inputs.lse, work.reserve(member, sums * kFloatBytes));
  at.inputs = inputs;
  at.dk = dk.whole;
  at.dv = dv.whole;
  HP_REQUIRE_OK(add_gather(member, work, {k, v}));
  AttentionShape shape = shape_for(s);
  shape.rows = shares.rows;
  if (s.causal) shape.keys = (member.rank + 1) * shares.rows;
  HP_REQUIRE_OK(add_backward(member, work, shape, at));
  HP_REQUIRE_OK(add_reduction(member, work, {dk, dv}));
  const int r = member.rank;
  add_part(parts, "q", s, r, inputs.q, shares.rows, s.heads);
  add_part(parts, "k", s, r, k.own, shares.rows, s.kv_heads);
  add_part(parts, "v", s, r, v.own, shares.rows, s.kv_heads);
  add_part(parts, "o", s, r, inputs.o, shares.rows, s.heads);
  add_part(parts, "do", s, r, at.d_o, shares.rows, s.heads);
  add_sums_part(parts, s, r, inputs.lse, shares.rows);
  add_part(parts, "dq", s, r, at.dq, shares.rows, s.heads);
  add_part(parts, "dk", s, r, dk.own, shares.rows, s.kv_heads);
  add_part(parts, "dv", s, r, dv.own, shares.rows, s.kv_heads);
  return Ok{};
}

Checked<std::unique_ptr<Baseline>> make_backward(const std::shared_ptr<Team>& team,
                                                 const Subject& s, const Shares& shares,
                                                 AddRank add) {
  BaselineParts parts;
  const std::vector<std::int64_t> shape = {s.batch, s.seq, s.heads, s.head_dim};
  const std::vector<std::int64_t> kv_shape = {s.batch, s.seq, s.kv_heads, s.head_dim};
  for (const char* name : {"q", "o", "do", "dq"}) parts.tensors[name] = {s.dtype, shape, {}};
  for (const char* name : {"k", "v", "dk", "dv"}) parts.tensors[name] = {s.dtype, kv_shape, {}};
  parts.tensors["lse"] = {DType::F32, {s.batch, s.heads, s.seq}, {}};
  return make_by_rank(team, s, shares, std::move(parts), add);
}

}  // namespace

Checked<std::unique_ptr<Baseline>> make_ulysses_backward_baseline(const std::shared_ptr<Team>& team,
                                                                  const Subject& subject) {
  HP_TRY(const Shares shares, share_heads(subject, team->ranks()));
  return make_backward(team, subject, shares, add_ulysses_backward);
}

Checked<std::unique_ptr<Baseline>> make_gathered_backward_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject) {
  if (subject.causal && subject.batch > 1) {
    return refuse_backward("causal ranks read keys of unequal lengths, of one sequence alone");
  }
  HP_TRY(const Shares shares, share_positions(subject, team->ranks()));
  return make_backward(team, subject, shares, add_gathered_backward);
}

}  // namespace harpe::library
