#pragma once

#include <string>

#include "measure/baselines/baselines.h"
#include "measure/baselines/moves.h"

namespace harpe::library {

// One rank's share of the positions, or of the heads.
struct Shares {
  int ranks = 1;
  std::int64_t rows = 0;  // positions of a rank
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
};
// Errors: G081 positions, heads or key heads do not divide.
[[nodiscard]] Checked<Shares> share_heads(const Subject& subject, int ranks);
[[nodiscard]] Checked<Shares> share_positions(const Subject& subject, int ranks);

// A rank's part of a tensor, of whose rows every rank gets a piece, in its three orders: [batch,
// rows, piece]; sorted by rank [rank, batch, rows, one piece]; and all rows of the rank's own piece
// [batch, rank, rows, one piece].
struct Exchanged {
  std::int64_t batch = 1;
  std::int64_t rows = 0;   // per rank
  std::int64_t piece = 0;  // bytes per row
  int ranks = 1;
  device::Element type = device::Element::BF16;
  cuda::DeviceAddress own = 0;       // by rows
  cuda::DeviceAddress sent = 0;      // by rank
  cuda::DeviceAddress received = 0;  // by rank
  cuda::DeviceAddress whole = 0;     // by piece; may be `received` if the batch is one

  [[nodiscard]] std::int64_t part() const { return batch * rows * piece; }  // of a rank
  [[nodiscard]] std::int64_t bytes() const { return ranks * part(); }
  [[nodiscard]] std::int64_t count() const { return part() / device::bytes_of(type); }

  // own -> sent, or received -> own if `back`.
  [[nodiscard]] Rows by_rank(bool back) const;
  // received -> whole, or whole -> sent if `back`.
  [[nodiscard]] Rows by_entry(bool back) const;
};

// Sums of rows, f32 [batch, heads, rows], whose heads are exchanged for positions: an Exchanged of
// one row, whose piece is the sums of a rank's heads. This is the last move, from `received` to
// [batch, heads of a rank, all rows].
[[nodiscard]] Rows by_head(const Exchanged& sums, std::int64_t heads);

// Memory for a tensor [batch, rows of a rank, ranks x heads, head_dim].
[[nodiscard]] Checked<Exchanged> reserve_exchanged(const Member& member, Work& work,
                                                   const Subject& subject, const Shares& shares,
                                                   std::int64_t heads);
[[nodiscard]] Checked<Ok> add_move(const Member& member, Work& work, const Rows& rows);
// Sends all ranks' parts of `sent` to `received`.
[[nodiscard]] Checked<Ok> exchange(const Member& member, const Exchanged& tensor, CUstream stream);

// Adds a rank's part of a tensor [batch, positions, heads, head_dim] that ranks share by positions.
void add_part(BaselineParts& parts, const std::string& buffer, const Subject& subject, int rank,
              cuda::DeviceAddress address, std::int64_t rows, std::int64_t heads);

// Adds a rank's work, and its parts of tensors.
using AddRank = Checked<Ok> (*)(Member&, const Subject&, const Shares&, BaselineParts&);
// Requires: the tensors of `parts` have types and shapes.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_by_rank(const std::shared_ptr<Team>& team,
                                                              const Subject& subject,
                                                              const Shares& shares,
                                                              BaselineParts parts, AddRank add);

}  // namespace harpe::library
