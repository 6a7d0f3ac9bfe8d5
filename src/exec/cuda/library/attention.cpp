#include "exec/cuda/library/baselines.h"
#include "exec/cuda/library/moves.h"

namespace harpe::library {
namespace {

using cuda::DeviceAddress;

constexpr std::int64_t kBytes = 2;  // of an element

Diag refuse(const std::string& reason) {
  return make_diag(DiagCode::G081, {{"what", "attention"}, {"reason", reason}});
}

cuda::HeadTensor packed(DeviceAddress address, std::int64_t rows, std::int64_t heads,
                        std::int64_t columns) {
  return {.address = address,
          .strides = {.batch = rows * heads * columns, .row = heads * columns, .head = columns}};
}

// Our kernel for what cuDNN is asked too; results alone, as there.
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

// cuDNN's kernel where there is one, and ours: the faster counts.
Checked<Ok> add_attention(const Member& member, Work& work, const AttentionShape& shape,
                          const AttentionAddresses& at) {
  if (member.attention->ok()) {
    auto made = (*member.attention)->prepare(shape, false);
    if (made.ok()) {
      const std::shared_ptr<const LibraryAttention> kernel = std::move(made).value();
      HP_TRY(const DeviceAddress space,
             work.reserve(member, std::max<std::int64_t>(kernel->workspace_bytes(), 512)));
      work.ways.emplace_back([kernel, at, space](CUstream stream) -> Checked<Ok> {
        if (kernel->launch(at, space, stream)) return Ok{};
        return make_diag(
            DiagCode::G080,
            {{"call", "execute"}, {"library", "cuDNN"}, {"reason", "it refused its own graph"}});
      });
    }
  }
  const cuda::AttentionSpec spec = spec_of(shape, at);
  const Checked<Ok> can = cuda::check(spec, member.device.facts().multiprocessors);
  if (can.ok()) {
    HP_TRY(Step ours, launch_step(member, spec));
    work.ways.push_back(std::move(ours));
  }
  if (work.ways.empty()) return can.error();
  return Ok{};
}

// One rank's part of the positions or of the heads.
struct Shares {
  int ranks = 1;
  std::int64_t rows = 0;  // positions of a rank
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
};

// A tensor [batch, rows, heads, columns] of a rank, and the same with all positions and the rank's
// heads, with a place for what is exchanged in between, [rank, batch, rows, its heads, columns].
struct Exchanged {
  std::int64_t batch = 1;
  std::int64_t rows = 0;   // of a rank
  std::int64_t heads = 0;  // of a rank, after the exchange
  std::int64_t columns = 0;
  int ranks = 1;
  DeviceAddress own = 0;   // by positions
  DeviceAddress sent = 0;  // by rank
  DeviceAddress received = 0;
  DeviceAddress whole = 0;  // by heads; may be `received`

  [[nodiscard]] std::int64_t row() const { return heads * columns * kBytes; }
  [[nodiscard]] std::int64_t part() const { return batch * rows * row(); }
  [[nodiscard]] std::int64_t bytes() const { return ranks * part(); }

  // own -> sent, or received -> own where `back`.
  [[nodiscard]] Rows by_rank(bool back) const {
    const DeviceAddress by = back ? received : sent;
    Rows rows_moved{.to = back ? own : by, .from = back ? by : own, .bytes = row(), .loops = {}};
    const auto add = [&](std::int64_t length, std::int64_t at_rank, std::int64_t at_own) {
      rows_moved.loops.push_back(
          {.length = length, .to = back ? at_own : at_rank, .from = back ? at_rank : at_own});
    };
    add(ranks, part(), row());
    add(batch * rows, row(), ranks * row());
    return rows_moved;
  }

  // received -> whole, or whole -> sent where `back`.
  [[nodiscard]] Rows by_entry(bool back) const {
    const DeviceAddress by = back ? sent : received;
    Rows rows_moved{
        .to = back ? by : whole, .from = back ? whole : by, .bytes = rows * row(), .loops = {}};
    const auto add = [&](std::int64_t length, std::int64_t at_rank, std::int64_t at_whole) {
      rows_moved.loops.push_back(
          {.length = length, .to = back ? at_rank : at_whole, .from = back ? at_whole : at_rank});
    };
    add(ranks, part(), rows * row());
    add(batch, rows * row(), ranks * rows * row());
    return rows_moved;
  }
};

Checked<Exchanged> reserve(const Member& member, Work& work, const Subject& s, const Shares& shares,
                           std::int64_t heads) {
  Exchanged t{.batch = s.batch,
              .rows = shares.rows,
              .heads = heads,
              .columns = s.head_dim,
              .ranks = shares.ranks};
  HP_TRY(t.own, work.reserve(member, t.bytes()));
  HP_TRY(t.sent, work.reserve(member, t.bytes()));
  HP_TRY(t.received, work.reserve(member, t.bytes()));
  t.whole = t.received;
  if (s.batch > 1) {
    HP_TRY(t.whole, work.reserve(member, t.bytes()));
  }
  return t;
}

Checked<Ok> add_move(const Member& member, Work& work, const Rows& rows) {
  HP_TRY(Step step, move_step(member, rows));
  work.steps.push_back(std::move(step));
  return Ok{};
}

void add_part(BaselineParts& parts, const std::string& buffer, const Subject& s, int rank,
              DeviceAddress address, std::int64_t rows, std::int64_t heads) {
  const std::int64_t bytes = rows * heads * s.head_dim * kBytes;
  const std::int64_t pitch = s.seq * heads * s.head_dim * kBytes;
  parts.tensors[buffer].parts.push_back({rank, address, rank * bytes, pitch, bytes, s.batch});
}

Checked<Ok> add_ulysses(Member& member, const Subject& s, const Shares& shares,
                        BaselineParts& parts) {
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  HP_TRY(const Exchanged q, reserve(member, work, s, shares, shares.heads));
  HP_TRY(const Exchanged k, reserve(member, work, s, shares, shares.kv_heads));
  HP_TRY(const Exchanged v, reserve(member, work, s, shares, shares.kv_heads));
  HP_TRY(Exchanged o, reserve(member, work, s, shares, shares.heads));
  if (s.batch == 1) o.whole = o.sent;
  const device::Element element = element_of(s.dtype);
  const auto send = [&member, element, ranks = shares.ranks](const Exchanged& t, CUstream stream) {
    return member.nccl->exchange({.address = t.sent, .count = t.part() / kBytes, .type = element},
                                 t.received, ranks, stream);
  };
  for (const Exchanged& t : {q, k, v}) HP_REQUIRE_OK(add_move(member, work, t.by_rank(false)));
  work.steps.emplace_back([=, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : {q, k, v}) HP_REQUIRE_OK(send(t, stream));
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
  work.add_arithmetic();
  if (s.batch > 1) HP_REQUIRE_OK(add_move(member, work, o.by_entry(true)));
  work.steps.emplace_back([=](CUstream stream) { return send(o, stream); });
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
  HP_TRY(const Exchanged k, reserve(member, work, s, shares, s.kv_heads));
  HP_TRY(const Exchanged v, reserve(member, work, s, shares, s.kv_heads));
  const std::int64_t q_bytes = s.batch * shares.rows * s.heads * s.head_dim * kBytes;
  HP_TRY(const DeviceAddress q, work.reserve(member, q_bytes));
  HP_TRY(const DeviceAddress o, work.reserve(member, q_bytes));
  const device::Element element = element_of(s.dtype);
  work.steps.emplace_back([=, &member](CUstream stream) {
    return member.nccl->group([&]() -> Checked<Ok> {
      for (const Exchanged& t : {k, v}) {
        HP_REQUIRE_OK(member.nccl->all_gather(
            {.address = t.own, .count = t.part() / kBytes, .type = element}, t.received, stream));
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
  work.add_arithmetic();
  add_part(parts, "q", s, member.rank, q, shares.rows, s.heads);
  add_part(parts, "k", s, member.rank, k.own, shares.rows, s.kv_heads);
  add_part(parts, "v", s, member.rank, v.own, shares.rows, s.kv_heads);
  add_part(parts, "o", s, member.rank, o, shares.rows, s.heads);
  return Ok{};
}

using Adder = Checked<Ok> (*)(Member&, const Subject&, const Shares&, BaselineParts&);

Checked<std::unique_ptr<Baseline>> make(const std::shared_ptr<Team>& team, const Subject& s,
                                        const Shares& shares, Adder add) {
  BaselineParts parts;
  const std::vector<std::int64_t> shape = {s.batch, s.seq, s.heads, s.head_dim};
  const std::vector<std::int64_t> kv_shape = {s.batch, s.seq, s.kv_heads, s.head_dim};
  parts.tensors["q"] = {.dtype = s.dtype, .shape = shape, .parts = {}};
  parts.tensors["k"] = {.dtype = s.dtype, .shape = kv_shape, .parts = {}};
  parts.tensors["v"] = {.dtype = s.dtype, .shape = kv_shape, .parts = {}};
  parts.tensors["o"] = {.dtype = s.dtype, .shape = shape, .parts = {}};
  for (int rank = 0; rank < team->ranks(); ++rank) {
    const auto current = team->member(rank).device.make_current();
    if (!current.ok()) return cuda::to_diag(current.error());
    HP_REQUIRE_OK(add(team->member(rank), s, shares, parts));
  }
  return std::make_unique<Baseline>(team, std::move(parts));
}

// Moves go by words of 16 bytes.
Checked<Ok> check_columns(const Subject& s) {
  if (s.head_dim % 8 == 0) return Ok{};
  return refuse("heads are no multiple of 8 wide");
}

}  // namespace

Checked<std::unique_ptr<Baseline>> make_ulysses_baseline(const std::shared_ptr<Team>& team,
                                                         const Subject& subject) {
  HP_REQUIRE_OK(check_columns(subject));
  Shares shares{.ranks = team->ranks()};
  HP_TRY(shares.rows, share_of("positions", subject.seq, team->ranks()));
  HP_TRY(shares.heads, share_of("heads", subject.heads, team->ranks()));
  HP_TRY(shares.kv_heads, share_of("key heads", subject.kv_heads, team->ranks()));
  return make(team, subject, shares, add_ulysses);
}

Checked<std::unique_ptr<Baseline>> make_gathered_baseline(const std::shared_ptr<Team>& team,
                                                          const Subject& subject) {
  HP_REQUIRE_OK(check_columns(subject));
  if (subject.causal && subject.batch > 1) {
    return refuse("causal ranks read keys of unequal lengths, of one sequence alone");
  }
  Shares shares{.ranks = team->ranks()};
  HP_TRY(shares.rows, share_of("positions", subject.seq, team->ranks()));
  return make(team, subject, shares, add_gathered);
}

}  // namespace harpe::library
