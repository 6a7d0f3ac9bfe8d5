#include <algorithm>

#include "lower/walk.h"

namespace harpe {

DraftWriter::DraftWriter(Draft& draft, bool space_time_only)
    : draft_(draft), space_time_only_(space_time_only) {
  const auto& buffers = draft.blocks.buffers();
  empty_.resize(buffers.size());
  if (space_time_only) return;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const bool some_empty = std::ranges::any_of(buffers[b].axes, [&](int axis) {
      const auto& starts = draft.blocks.axes()[static_cast<std::size_t>(axis)].starts;
      return std::ranges::adjacent_find(starts) != starts.end();
    });
    if (!some_empty) continue;
    empty_[b].resize(static_cast<std::size_t>(buffers[b].blocks));
    for (BlockId block = 0; block < buffers[b].blocks; ++block) {
      empty_[b][static_cast<std::size_t>(block)] =
          draft.blocks.elements(static_cast<int>(b), block) == 0;
    }
  }
}

int DraftWriter::slot(const SlotFamily& family, RankId rank, const Region& region) {
  std::vector<int>& ranks = by_name_[family.name];
  if (ranks.empty()) ranks.assign(static_cast<std::size_t>(blocks().ranks()), -1);
  int& slot = ranks[rank.index()];
  if (slot < 0) {
    slot = static_cast<int>(draft_.slots.size());
    const BufferTable& buffer = blocks().buffers()[static_cast<std::size_t>(family.buffer)];
    draft_.slots.push_back({.rank = rank,
                            .name = family.name,
                            .buffer = family.buffer,
                            .level = family.level,
                            .dtype = family.dtype,
                            .holds = holds_of(blocks(), buffer.digits, region)});
    live_.emplace_back();
    return slot;
  }
  const BufferTable& buffer = blocks().buffers()[static_cast<std::size_t>(family.buffer)];
  HP_CHECK(draft_.slots[static_cast<std::size_t>(slot)].holds ==
               holds_of(blocks(), buffer.digits, region),
           "slot `" + family.name + "` is used with two shapes");
  return slot;
}

int DraftWriter::home(int buffer, RankId rank) {
  const BufferTable& table = blocks().buffers()[static_cast<std::size_t>(buffer)];
  return slot(
      {.name = table.name + ".home", .buffer = buffer, .level = Level::Home, .dtype = table.dtype},
      rank, blocks().home(buffer, rank));
}

bool DraftWriter::is_empty(int buffer, BlockId block) const {
  const std::vector<bool>& empty = empty_[static_cast<std::size_t>(buffer)];
  return !empty.empty() && empty[static_cast<std::size_t>(block)];
}

std::vector<BlockId> DraftWriter::blocks_in(int buffer, const Region& region) const {
  std::vector<BlockId> found =
      blocks().blocks_in(blocks().buffers()[static_cast<std::size_t>(buffer)].digits, region);
  if (!empty_[static_cast<std::size_t>(buffer)].empty()) {
    std::erase_if(found, [&](BlockId block) { return is_empty(buffer, block); });
  }
  return found;
}

bool DraftWriter::is_live(int slot, BlockId block) const {
  return live_[static_cast<std::size_t>(slot)].contains(block);
}

void DraftWriter::set_live(int slot, BlockId block, bool live) {
  live_[static_cast<std::size_t>(slot)].set(block, live);
}

std::vector<BlockId> DraftWriter::live_blocks(int slot, const Region& region) const {
  const int buffer = draft_.slots[static_cast<std::size_t>(slot)].buffer;
  if (live_[static_cast<std::size_t>(slot)].empty()) return {};
  std::vector<BlockId> found = blocks_in(buffer, region);
  std::erase_if(found, [&](BlockId block) { return !is_live(slot, block); });
  return found;
}

DraftTask& DraftWriter::add(DraftTask task) {
  draft_.tasks.push_back(std::move(task));
  return draft_.tasks.back();
}

void spread_pushes(DraftWriter& writer, std::size_t first, const std::vector<int>& over,
                   FirstPeer peer) {
  const Blocks& blocks = writer.blocks();
  const std::int64_t size = blocks.extent(over);
  const auto distance = [&](const DraftTask& task) {
    const RankId to = writer.draft().slot(task.writes.front()).rank;
    const std::int64_t ahead = blocks.coordinate(to, over) - blocks.coordinate(task.rank, over);
    return ((peer == FirstPeer::Successor ? ahead : -ahead) + size) % size;
  };
  std::vector<DraftTask>& tasks = writer.draft().tasks;
  std::stable_sort(
      tasks.begin() + static_cast<std::ptrdiff_t>(first), tasks.end(),
      [&](const DraftTask& a, const DraftTask& b) { return distance(a) < distance(b); });
}

std::vector<RankId> ranks_along(const Blocks& blocks, RankId rank, const std::vector<int>& over) {
  const std::int64_t count = blocks.extent(over);
  const std::int64_t own = blocks.coordinate(rank, over);
  std::vector<RankId> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    ranks.push_back(blocks.with_coordinate(rank, over, own + i));
  }
  return ranks;
}

}  // namespace harpe
