#include "measure/baselines/exchange.h"

namespace harpe::library {
namespace {

using cuda::DeviceAddress;

// Moves use 16-byte vectors.
Checked<Ok> check_columns(const Subject& s) {
  if (s.head_dim % 8 == 0) return Ok{};
  return make_diag(DiagCode::G081,
                   {{"what", "attention"}, {"reason", "heads are no multiple of 8 wide"}});
}

// Loops around rows of `bytes`, between memory sorted by rank and memory in another order.
Rows rows_between(DeviceAddress to, DeviceAddress from, std::int64_t bytes, bool from_ranks,
                  std::span<const Rows::Loop> loops) {
  Rows rows{.to = to, .from = from, .bytes = bytes, .loops = {}};
  for (const Rows::Loop& loop : loops) {  // .to is the step by rank
    rows.loops.push_back(from_ranks ? Rows::Loop{loop.length, loop.from, loop.to} : loop);
  }
  return rows;
}

}  // namespace

Checked<Shares> share_positions(const Subject& subject, int ranks) {
  HP_REQUIRE_OK(check_columns(subject));
  Shares shares{.ranks = ranks};
  HP_TRY(shares.rows, share_of("positions", subject.seq, ranks));
  return shares;
}

Checked<Shares> share_heads(const Subject& subject, int ranks) {
  HP_TRY(Shares shares, share_positions(subject, ranks));
  HP_TRY(shares.heads, share_of("heads", subject.heads, ranks));
  HP_TRY(shares.kv_heads, share_of("key heads", subject.kv_heads, ranks));
  return shares;
}

Rows Exchanged::by_rank(bool back) const {
  const std::array<Rows::Loop, 2> loops = {
      {{.length = ranks, .to = part(), .from = piece},
       {.length = batch * rows, .to = piece, .from = ranks * piece}}};
  return back ? rows_between(own, received, piece, true, loops)
              : rows_between(sent, own, piece, false, loops);
}

Rows Exchanged::by_entry(bool back) const {
  const std::int64_t bytes = rows * piece;
  const std::array<Rows::Loop, 2> loops = {{{.length = ranks, .to = part(), .from = bytes},
                                            {.length = batch, .to = bytes, .from = ranks * bytes}}};
  return back ? rows_between(sent, whole, bytes, false, loops)
              : rows_between(whole, received, bytes, true, loops);
}

Rows by_head(const Exchanged& sums, std::int64_t heads) {
  const std::int64_t run = sums.piece / heads;  // one rank's sums of a head
  return {.to = sums.whole,
          .from = sums.received,
          .bytes = run,
          .loops = {{.length = sums.ranks, .to = run, .from = sums.part()},
                    {.length = sums.batch * heads, .to = sums.ranks * run, .from = run}}};
}

Checked<Exchanged> reserve_exchanged(const Member& member, Work& work, const Subject& s,
                                     const Shares& shares, std::int64_t heads) {
  Exchanged t{.batch = s.batch,
              .rows = shares.rows,
              .piece = heads * s.head_dim * kElementBytes,
              .ranks = shares.ranks,
              .type = element_of(s.dtype)};
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

Checked<Ok> exchange(const Member& member, const Exchanged& t, CUstream stream) {
  return member.nccl->exchange({.address = t.sent, .count = t.count(), .type = t.type}, t.received,
                               t.ranks, stream);
}

void add_part(BaselineParts& parts, const std::string& buffer, const Subject& s, int rank,
              DeviceAddress address, std::int64_t rows, std::int64_t heads) {
  const std::int64_t bytes = rows * heads * s.head_dim * kElementBytes;
  const std::int64_t pitch = s.seq * heads * s.head_dim * kElementBytes;
  parts.tensors[buffer].parts.push_back({rank, address, rank * bytes, pitch, bytes, s.batch});
}

Checked<std::unique_ptr<Baseline>> make_by_rank(const std::shared_ptr<Team>& team,
                                                const Subject& subject, const Shares& shares,
                                                BaselineParts parts, AddRank add) {
  for (int rank = 0; rank < team->ranks(); ++rank) {
    const auto current = team->member(rank).device.make_current();
    if (!current.ok()) return cuda::to_diag(current.error());
    HP_REQUIRE_OK(add(team->member(rank), subject, shares, parts));
  }
  return std::make_unique<Baseline>(team, std::move(parts));
}

}  // namespace harpe::library
