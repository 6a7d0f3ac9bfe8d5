#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lower/block_set.h"
#include "lower/draft.h"
#include "lower/nest_space.h"
#include "lower/scatter.h"
#include "support/diag.h"

namespace harpe {

// One copy of part of a buffer at some rank: a slot and the region in it.
struct Source {
  int slot = -1;
  RankId rank;
  Region region;
  int choice = -1;         // iteration digit that a routed transfer was cut by, or -1
  std::int32_t value = 0;  // of that digit: the iterations that use this source
};

// The slots of one name on all ranks.
struct SlotFamily {
  std::string name;
  int buffer = -1;
  Level level = Level::Home;
  DType dtype = DType::F32;
};

// Shared by all parts of the walk: the draft and the slots made so far.
class DraftWriter {
 public:
  DraftWriter(Draft& draft, bool space_time_only);

  [[nodiscard]] Draft& draft() { return draft_; }
  [[nodiscard]] const Blocks& blocks() const { return draft_.blocks; }
  [[nodiscard]] bool space_time_only() const { return space_time_only_; }

  // The slot of this family on `rank`, created at its first use; it holds the digits that are whole
  // in `region`.
  int slot(const SlotFamily& family, RankId rank, const Region& region);
  int home(int buffer, RankId rank);

  // Non-empty blocks of a region (D12), ascending; in space-time-only mode all blocks.
  [[nodiscard]] std::vector<BlockId> blocks_in(int buffer, const Region& region) const;
  [[nodiscard]] bool is_empty(int buffer, BlockId block) const;

  // Whether a block of partial states has contributions that were not passed on yet.
  [[nodiscard]] bool is_live(int slot, BlockId block) const;
  void set_live(int slot, BlockId block, bool live);
  [[nodiscard]] std::vector<BlockId> live_blocks(int slot, const Region& region) const;

  DraftTask& add(DraftTask task);
  std::int64_t next_instance() { return instances_++; }
  std::int64_t next_position() { return positions_++; }
  std::int32_t next_kernel() { return kernels_++; }

 private:
  Draft& draft_;
  bool space_time_only_;
  std::unordered_map<std::string, std::vector<int>>
      // Per rank; -1: not created.
      by_name_;
  std::vector<std::vector<bool>> empty_;  // per buffer, per block; {}: no block is empty
  std::vector<BlockSet> live_;            // per slot: usually few blocks
  std::int64_t instances_ = 0;
  std::int64_t positions_ = 0;
  std::int32_t kernels_ = 0;
};

// Ranks that differ from `rank` only along `over`: itself first, then its successors.
[[nodiscard]] std::vector<RankId> ranks_along(const Blocks& blocks, RankId rank,
                                              const std::vector<int>& over);

// The order in which a source pushes to its peers, after itself.
enum class FirstPeer : std::uint8_t {
  Successor,    // for results: if loops start at the own rank, the successor's block comes next
  Predecessor,  // for operands: the rank whose loop reaches the source's block next
};

// Sorts the copies from task `first` on, which their sources push, by distance along `over`. So no
// two sources send to one destination at the same time.
void spread_pushes(DraftWriter& writer, std::size_t first, const std::vector<int>& over,
                   FirstPeer peer);

// Tracks where an operand is after each of its stages; runs the stages of one statement.
class Stager {
 public:
  Stager(DraftWriter& writer, const NestSpace& space, const NestStmt& stmt);

  // Checks the rules that need no walk. Errors: F209, F210, F224, F227, F301.
  [[nodiscard]] Checked<Ok> check() const;
  // All stages at this loop position, at time t. Errors: F209-F212, F224, F301.
  [[nodiscard]] Checked<Ok> run(int position, Time t, std::int64_t position_id);
  // The copies of an operand at a rank after its last stage.
  [[nodiscard]] std::vector<Source> sources(int operand, RankId rank) const;

 private:
  struct Level {
    const NestMove* move;
    int cut = -1;  // the digit that arrivals are cut by, at this or an earlier level
    std::vector<std::vector<Source>> at;  // per rank
  };
  struct Operand {
    const OperandMap* map;
    std::string label;  // buffer name, made unique when a statement reads the buffer twice
    std::vector<Level> levels;
  };
  [[nodiscard]] Checked<Ok> run_level(Operand& operand, std::size_t level, Time t,
                                      std::int64_t position_id);
  [[nodiscard]] Region level_region(const Operand& operand, std::size_t level, Time t,
                                    RankId rank) const;
  // At a cut level: the sources for iterations with this value.
  [[nodiscard]] Checked<std::vector<Source>> find_parts(const Operand& operand, std::size_t level,
                                                        const Region& need, RankId rank,
                                                        std::int32_t value) const;
  [[nodiscard]] Checked<std::vector<Source>> relay_parts(const Operand& operand, std::size_t level,
                                                         Time t, const Region& need,
                                                         RankId rank) const;
  [[nodiscard]] Checked<Ok> check_level(const Operand& operand, std::size_t level) const;
  [[nodiscard]] Checked<Ok> check_relay(const Operand& operand, const NestMove& move) const;
  [[nodiscard]] Source arrival_slot(SlotFamily family, int cut, std::int32_t value, RankId rank,
                                    const Region& need);
  [[nodiscard]] bool has_type(const Source& source, DType dtype) const;
  [[nodiscard]] Checked<Ok> check_cuts(const Operand& operand, std::size_t level) const;
  void add_copies(const Operand& operand, const NestMove& move, const Source& from,
                  const Source& to, std::int64_t instance, std::int64_t position_id);

  DraftWriter& writer_;
  const NestSpace& space_;
  const NestStmt& stmt_;
  std::vector<Operand> operands_;
};

// Empty if the loop just above `move` rotates a digit of `buffer` by one over exactly the move's
// axes; otherwise the reason, for F209.
[[nodiscard]] std::string rotation_defect(const Blocks& blocks, const NestSpace& space,
                                          const NestMove& move,
                                          std::span<const int> followed_digits);

// Keeps, sends and combines the contributions of one state group; runs the drains of one statement.
class Drainer {
 public:
  Drainer(DraftWriter& writer, const NestSpace& space, const NestStmt& stmt, StateGroup group);

  // Checks the rules that need no walk. Errors: F207, F208, F223, F227, F240-F242.
  [[nodiscard]] Checked<Ok> check() const;
  [[nodiscard]] Checked<Ok> check_relays() const;  // Errors: F209, F210, F216.
  // Where `rank`'s current contribution to `target` goes: its own Acc slot, or the home under
  // Store; under an inline drain the owners' slots, each with the region that it owns.
  struct Deposit {
    int slot = -1;
    Region region;
  };
  [[nodiscard]] std::vector<Deposit> deposits(int target, RankId rank, Time t);
  [[nodiscard]] const NestMove* inline_drain() const;  // or null
  // The group's drain at this loop position, if any. Errors: F209-F211, F216, F217, F219.
  [[nodiscard]] Checked<Ok> run(int position, Time t, std::int64_t position_id);
  // After the last iteration: finalises pending states, inits untouched blocks, gathers replicas.
  [[nodiscard]] Checked<Ok> finish();

  [[nodiscard]] const StateGroup& group() const { return group_; }

 private:
  struct Contribution {
    RankId from;
    std::vector<int> slots;                    // per target of the group
    std::vector<Region> regions;               // regions that may be live, per target
    std::vector<std::vector<BlockId>> blocks;  // per target of the group
  };
  using Regions = std::vector<std::optional<Region>>;  // per target of the group

  [[nodiscard]] const BufferTable& buffer(int target) const;
  [[nodiscard]] int buffer_index(int target) const;
  [[nodiscard]] DType state_type(int target) const;
  [[nodiscard]] DType wire_type(int target, const NestMove& move) const;
  [[nodiscard]] bool only_changes_hands(const NestMove& move) const;
  [[nodiscard]] std::vector<int> pinned_axes(int target, std::size_t digit, int levels) const;
  [[nodiscard]] Region home_region(int target, RankId rank, int levels) const;
  [[nodiscard]] Region accumulated(int target, Time t, RankId rank) const;
  [[nodiscard]] std::optional<Region> owned(int target, std::size_t level, Time t,
                                            RankId rank) const;
  [[nodiscard]] std::optional<Region> held(int target, std::size_t level, Time t,
                                           RankId rank) const;
  [[nodiscard]] std::optional<Region> destination(int target, std::size_t level, Time t,
                                                  RankId rank) const;
  int accumulator(int target, RankId rank, Time t);
  int source_slot(int target, std::size_t level, RankId rank, Time t);
  int result_slot(int target, std::size_t level, RankId rank, Time t);

  [[nodiscard]] Checked<Ok> collect(std::size_t level, Time t, std::int64_t position_id);
  std::vector<Contribution> collect_at(std::size_t level, Time t, RankId rank,
                                       std::int64_t instance, std::int64_t position_id);
  [[nodiscard]] Checked<Ok> relay(std::size_t level, Time t, std::int64_t position_id);
  [[nodiscard]] Checked<Ok> check_relay(std::size_t level) const;
  [[nodiscard]] Checked<Ok> relay_home(std::size_t level, Time t, std::int64_t instance,
                                       std::int64_t position_id);
  [[nodiscard]] bool is_complete(std::size_t level) const;

  [[nodiscard]] std::vector<int> drained_axes() const;
  [[nodiscard]] Checked<Ok> check_coverage(const BufferTable& out) const;
  [[nodiscard]] Checked<Ok> check_partial(const BufferTable& out) const;
  [[nodiscard]] Checked<Ok> check_inline() const;
  [[nodiscard]] Checked<Ok> check_replicas(const BufferTable& out) const;
  [[nodiscard]] Checked<Ok> check_one_shots(const BufferTable& out) const;
  void drop_replicas(std::size_t level, Time t);
  [[nodiscard]] bool is_shared(int target, std::size_t level, Time t) const;
  [[nodiscard]] bool rounds_unevenly(std::size_t level, Time t) const;
  [[nodiscard]] bool begins_with_own(std::size_t level, Time t) const;
  void round_own(std::vector<Contribution>& sources, RankId rank, std::size_t level, Time t,
                 std::int64_t position_id);
  [[nodiscard]] std::string inbox_name(std::size_t level, std::int64_t distance, Time t) const;
  [[nodiscard]] std::vector<int> unbound_axes(const NestMove& move) const;
  Contribution take(std::size_t level, Time t, RankId rank, const Regions& regions);
  Contribution send(const Contribution& from, RankId to, const std::string& inbox,
                    const NestMove& move, std::int64_t instance, std::int64_t position_id);
  [[nodiscard]] Checked<Ok> combine(std::vector<Contribution> sources, RankId rank,
                                    const std::vector<int>& results, bool finalise, int chunk = -1);
  [[nodiscard]] Checked<Ok> finalise_pending();
  void init_untouched();
  void gather_replicas();
  void release();

  DraftWriter& writer_;
  const NestSpace& space_;
  const NestStmt& stmt_;
  StateGroup group_;
  std::vector<ScatterPin> pins_;
  struct Travelling {
    std::vector<int> slots;
    Regions regions;
  };
  std::vector<std::vector<Travelling>> previous_;  // per level, per rank: a relay's last step
  std::vector<std::pair<int, BlockId>> consumed_;  // partial states passed on by the current drain
};

}  // namespace harpe
