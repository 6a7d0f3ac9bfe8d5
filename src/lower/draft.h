#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

// The plan while it is being made: blocks are lists of ids, order is the sequential order of
// derivation, and what must precede what is still implied by it.

struct DraftSlot {
  RankId rank;
  std::string name;  // equal names on different ranks are one symmetric slot
  int buffer = -1;
  Level level = Level::Home;
  DType dtype = DType::F32;
  std::vector<bool> holds;  // as Alloc::holds
};

struct DraftRef {
  int slot = -1;
  WriteMode mode = WriteMode::Read;
  std::vector<BlockId> blocks;  // ascending
  int choice = -1;              // as Ref::when: a digit, or -1
  std::int32_t value = 0;
};

struct DraftTask {
  RankId rank;
  QueueKind queue = QueueKind::Host;
  TaskKind kind = TaskKind::Entry;
  int nest = -1;
  int stmt = 0;
  std::vector<BlockId> iter;  // over the digits of the nest's axes
  std::vector<DraftRef> reads;
  std::vector<DraftRef> writes;
  // Where it came from: transfers of one move at one step share an instance, all moves of one loop
  // position at one step share a position.
  std::int64_t instance = -1;
  std::int64_t position = -1;
  std::vector<int> over;  // mesh axes the transfer crosses
  int piece = 0;          // which part of a transfer cut by `chunk`
  How how = How::Bulk;
  Via via = Via::Sm;
  Fence fence = Fence::PerPut;  // of a put: which puts a signal raised behind it is ordered after
  CollectiveOp collective = CollectiveOp::AllGather;
  std::optional<DType> wire;  // of a ReduceScatter
  std::int32_t group = -1;
  std::int32_t kernel = -1;
  std::vector<int> after;  // tasks it waits for besides its queue's previous one; filled by order.h
  bool is_barrier = false;  // a pure ordering node between `after` and whoever waits for it
};

struct Draft {
  Program program;
  Mesh mesh;
  NormalForm form;
  Blocks blocks;
  std::vector<std::vector<int>> nest_digits;  // per nest of the program: its iteration digits
  std::vector<DraftSlot> slots;
  std::vector<DraftTask> tasks;

  [[nodiscard]] const std::vector<int>& digits_of(int slot) const {
    return blocks.buffers()[static_cast<std::size_t>(slots[static_cast<std::size_t>(slot)].buffer)]
        .digits;
  }
  [[nodiscard]] const DraftSlot& slot(const DraftRef& ref) const {
    return slots[static_cast<std::size_t>(ref.slot)];
  }
};

// What a time limit gives up.
constexpr std::string_view kLowering = "lowering the schedule";

// A transfer handed to a NIC (plan/plan.h).
[[nodiscard]] bool is_put(const DraftTask& task);
[[nodiscard]] RankId destination_of(const Draft& draft, const DraftTask& put);

// The queue a transport's tasks run on: copies by SMs share the compute queue.
[[nodiscard]] QueueKind queue_of(Via via);

// Which digits of a region stand for all their values; digits of extent 1 always do.
[[nodiscard]] std::vector<bool> holds_of(const Blocks& blocks, std::span<const int> digits,
                                         const Region& region);

// The fewest boxes that make up exactly these blocks. Requires: ascending, no duplicates.
[[nodiscard]] std::vector<Box> boxes_of(const Blocks& blocks, std::span<const int> digits,
                                        const std::vector<BlockId>& block_ids);

// One task a line, as `harpe lower` prints a draft.
[[nodiscard]] std::string print(const Draft& draft);

// Index of a block among those its slot can hold at one time, and which content it belongs to.
class SlotIndex {
 public:
  SlotIndex(const Blocks& blocks, std::span<const int> digits, const std::vector<bool>& holds);
  [[nodiscard]] std::int64_t size() const { return size_; }
  struct Place {
    std::int64_t local;    // 0 .. size-1
    std::int64_t content;  // equal for blocks that can be in the slot together
  };
  [[nodiscard]] Place locate(BlockId block) const;

  // The place looked at last: most blocks follow the one before, in the same group of blocks of
  // which all or none are held.
  struct Cursor {
    BlockId block = -1;
    BlockId end = -1;  // of the group
    Place place{0, 0};
  };
  [[nodiscard]] Place locate(BlockId block, Cursor& cursor) const {
    const BlockId ahead = block - cursor.block;
    if (ahead == 1 && block < cursor.end) {
      ++(is_first_held_ ? cursor.place.local : cursor.place.content);
    } else if (ahead != 0) {
      cursor.place = locate(block);
      cursor.end = block - block % group_ + group_;
    }
    cursor.block = block;
    return cursor.place;
  }

 private:
  struct Step {
    std::int64_t extent;
    std::int64_t stride;  // among the values that are held, or among the others
    bool held;
    int shift = -1;  // of a power of two: its logarithm
  };
  std::vector<Step> steps_;  // least significant first: digits in a row that are held alike
  std::int64_t size_ = 1;
  std::int64_t group_ = 1;  // blocks in the first step
  bool is_first_held_ = false;
};

}  // namespace harpe
