#include "lower/eliminate.h"

#include <algorithm>

namespace harpe {
namespace {

// One value of type T per block that a slot can hold at a time; a new content clears them.
template <class T>
class SlotMap {
 public:
  SlotMap(SlotIndex index, T none)
      : index_(std::move(index)),
        none_(none),
        values_(static_cast<std::size_t>(index_.size()), none) {}

  [[nodiscard]] T get(BlockId block) {
    const SlotIndex::Place place = index_.locate(block, cursor_);
    return place.content == content_ ? values_[static_cast<std::size_t>(place.local)] : none_;
  }
  void set(BlockId block, T value) {
    const SlotIndex::Place place = index_.locate(block, cursor_);
    if (place.content != content_) {
      std::ranges::fill(values_, none_);
      content_ = place.content;
    }
    values_[static_cast<std::size_t>(place.local)] = value;
  }

 private:
  SlotIndex index_;
  SlotIndex::Cursor cursor_;
  T none_;
  std::vector<T> values_;
  std::int64_t content_ = -1;
};

template <class T>
std::vector<SlotMap<T>> make_maps(const Draft& draft, T none) {
  std::vector<SlotMap<T>> maps;
  for (std::size_t s = 0; s < draft.slots.size(); ++s) {
    maps.emplace_back(
        SlotIndex(draft.blocks, draft.digits_of(static_cast<int>(s)), draft.slots[s].holds), none);
  }
  return maps;
}

bool is_boundary(const DraftTask& task) {
  return task.kind == TaskKind::Entry || task.kind == TaskKind::Exit;
}

// Keeps pair `i` of a copy only if `keep(read ref, write ref, block)` is true.
template <class Keep>
void filter_copy(DraftTask& task, const Keep& keep) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < task.writes.size(); ++i) {
    std::vector<BlockId> blocks;
    for (const BlockId block : task.writes[i].blocks) {
      if (keep(task.reads[i], task.writes[i], block)) blocks.push_back(block);
    }
    if (blocks.empty()) continue;
    DraftRef read = std::move(task.reads[i]);
    DraftRef write = std::move(task.writes[i]);
    read.blocks = blocks;
    write.blocks = std::move(blocks);
    task.reads[kept] = std::move(read);
    task.writes[kept] = std::move(write);
    ++kept;
  }
  task.reads.resize(kept);
  task.writes.resize(kept);
}

void drop_empty(Draft& draft) {
  std::erase_if(draft.tasks,
                [](const DraftTask& task) { return !is_boundary(task) && task.writes.empty(); });
}

}  // namespace

void remove_dead_transfers(Draft& draft) {
  auto needed = make_maps<std::uint8_t>(draft, 0);
  const auto at = [&](const DraftRef& ref) -> auto& {
    return needed[static_cast<std::size_t>(ref.slot)];
  };
  for (std::size_t s = 0; s < draft.slots.size(); ++s) {
    const DraftSlot& slot = draft.slots[s];
    const BufferTable& buffer = draft.blocks.buffers()[static_cast<std::size_t>(slot.buffer)];
    if (slot.level != Level::Home || buffer.role != Role::Out) continue;
    const Region home = draft.blocks.home(slot.buffer, slot.rank);
    for (const BlockId block : draft.blocks.blocks_in(buffer.digits, home)) needed[s].set(block, 1);
  }
  for (std::size_t i = draft.tasks.size(); i-- > 0;) {
    DraftTask& task = draft.tasks[i];
    if (is_boundary(task)) continue;
    if (task.kind == TaskKind::Copy) {
      filter_copy(task, [&](const DraftRef&, const DraftRef& write, BlockId block) {
        return at(write).get(block) != 0;
      });
    }
    const bool used = std::ranges::any_of(task.writes, [&](const DraftRef& ref) {
      return std::ranges::any_of(ref.blocks,
                                 [&](BlockId block) { return at(ref).get(block) != 0; });
    });
    if (!used) {
      task.writes.clear();
      continue;
    }
    for (const DraftRef& ref : task.writes) {
      for (const BlockId block : ref.blocks) at(ref).set(block, ref.mode == WriteMode::Add ? 1 : 0);
    }
    for (const DraftRef& ref : task.reads) {
      for (const BlockId block : ref.blocks) at(ref).set(block, 1);
    }
  }
  drop_empty(draft);
}

void remove_redundant_transfers(Draft& draft) {
  std::vector<std::int64_t>
      first_value;  // per buffer: the first number of its input blocks' values
  std::int64_t next_value = 1;
  for (const BufferTable& buffer : draft.blocks.buffers()) {
    first_value.push_back(next_value);
    next_value += buffer.blocks;
  }
  auto values = make_maps<std::int64_t>(draft, 0);
  const auto value_of = [&](const DraftRef& ref, BlockId block) {
    const std::int64_t value = values[static_cast<std::size_t>(ref.slot)].get(block);
    const DraftSlot& slot = draft.slot(ref);
    if (value != 0 || slot.level != Level::Home) return value;
    return first_value[static_cast<std::size_t>(slot.buffer)] + block;
  };
  for (DraftTask& task : draft.tasks) {
    if (task.kind == TaskKind::Copy) {
      filter_copy(task, [&](const DraftRef& read, const DraftRef& write, BlockId block) {
        const bool same_type = draft.slot(read).dtype == draft.slot(write).dtype;
        const std::int64_t value = same_type ? value_of(read, block) : next_value++;
        if (value == values[static_cast<std::size_t>(write.slot)].get(block)) return false;
        values[static_cast<std::size_t>(write.slot)].set(block, value);
        return true;
      });
      continue;
    }
    for (const DraftRef& ref : task.writes) {
      for (const BlockId block : ref.blocks) {
        values[static_cast<std::size_t>(ref.slot)].set(block, next_value++);
      }
    }
  }
  drop_empty(draft);
}

}  // namespace harpe
