#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

// The plan under construction: blocks are lists of ids, tasks are in the sequential order of the
// derivation, and dependences are implicit in that order.

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
  // The origin of a transfer: transfers of one move at one step share an instance; all moves of one
  // loop position at one step share a position.
  std::int64_t instance = -1;
  std::int64_t position = -1;
  std::vector<int> over;  // mesh axes the transfer crosses
  int piece = 0;          // the part of a transfer cut by `chunk`
  How how = How::Bulk;
  Via via = Via::Sm;
  Fence fence = Fence::PerPut;  // of a put: which puts a signal behind it covers
  CollectiveOp collective = CollectiveOp::AllGather;
  std::optional<DType> wire;  // of a ReduceScatter: the wire type
  std::int32_t group = -1;
  std::int32_t kernel = -1;
  std::vector<int> after;   // besides its queue's previous task; filled by order.h
  bool is_barrier = false;  // orders `after` before the tasks that wait for it; does nothing itself
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

// The name of the work that a time limit ends.
constexpr std::string_view kLowering = "lowering the schedule";

// A transfer handed to a NIC (plan/plan.h).
[[nodiscard]] bool is_put(const DraftTask& task);
[[nodiscard]] RankId destination_of(const Draft& draft, const DraftTask& put);

// The queue of a transport's tasks; copies by SMs share the compute queue.
[[nodiscard]] QueueKind queue_of(Via via);

// Which digits of a region are whole; digits of extent 1 always are.
[[nodiscard]] std::vector<bool> holds_of(const Blocks& blocks, std::span<const int> digits,
                                         const Region& region);

// The fewest boxes that contain exactly these blocks. Requires: ascending, no duplicates.
[[nodiscard]] std::vector<Box> boxes_of(const Blocks& blocks, std::span<const int> digits,
                                        const std::vector<BlockId>& block_ids);

// One task per line, as `harpe lower` prints a draft.
[[nodiscard]] std::string print(const Draft& draft);

// Finds a block's index among those that its slot can hold at one time, and its content.
class SlotIndex {
 public:
  SlotIndex(const Blocks& blocks, std::span<const int> digits, const std::vector<bool>& holds);
  [[nodiscard]] std::int64_t size() const { return size_; }
  struct Place {
    std::int64_t local;    // 0 .. size-1
    std::int64_t content;  // equal for blocks that can be in the slot at the same time
  };
  [[nodiscard]] Place locate(BlockId block) const;

  // The last place found. Most blocks follow the previous one within a group of consecutive blocks
  // of which the slot holds all or one.
  struct Cursor {
    BlockId block = -1;
    BlockId end = -1;  // end of the group
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
    std::int64_t stride;  // among the held digits, or among the others
    bool held;
    int shift = -1;  // log2 of the extent if it is a power of two
  };
  std::vector<Step> steps_;  // least significant first: consecutive digits with equal `held`
  std::int64_t size_ = 1;
  std::int64_t group_ = 1;  // blocks in the first step
  bool is_first_held_ = false;
};

}  // namespace harpe
