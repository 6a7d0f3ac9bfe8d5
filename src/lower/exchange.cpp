#include "lower/exchange.h"

#include <map>

namespace harpe {

std::size_t instance_end(const Draft& draft, std::size_t begin) {
  const DraftTask& first = draft.tasks[begin];
  std::size_t end = begin + 1;
  while (first.kind == TaskKind::Copy && end < draft.tasks.size() &&
         draft.tasks[end].kind == TaskKind::Copy && draft.tasks[end].instance == first.instance) {
    ++end;
  }
  return end;
}

bool RunCheck::is_run(const DraftRef& ref) {
  const DraftSlot& slot = draft_.slot(ref);
  const auto known = known_.find(Parts(slot.buffer, slot.holds, ref.blocks));
  if (known != known_.end()) return known->second;
  const Blocks& blocks = draft_.blocks;
  const Region region = slot_region(blocks, slot.buffer, slot.holds, ref.blocks.front());
  const std::vector<Box> boxes = boxes_of(blocks, draft_.digits_of(ref.slot), ref.blocks);
  Shape& last = shapes_[{slot.buffer, slot.holds}];
  if (last.region != region) {
    last = {.region = region, .shape = slot_shape(blocks, slot.buffer, region)};
  }
  const bool is_one = is_contiguous(blocks, slot.buffer, last.shape, boxes);
  known_.emplace(Question{slot.buffer, slot.holds, ref.blocks}, is_one);
  return is_one;
}

std::vector<Exchange> exchanges_of(const Draft& draft, std::size_t begin, std::size_t end) {
  const std::vector<int>& over = draft.tasks[begin].over;
  const auto size = static_cast<std::size_t>(draft.blocks.extent(over));
  std::map<RankId, Exchange> groups;  // by the group's rank at coordinate 0
  for (std::size_t i = begin; i < end; ++i) {
    const DraftTask& task = draft.tasks[i];
    // A block cut by a routed digit has a length known only at run time.
    if (task.writes.size() != 1 || task.writes[0].choice >= 0) return {};
    const RankId from = draft.slot(task.reads[0]).rank;
    const RankId to = draft.slot(task.writes[0]).rank;
    // After an inline stage, a source may lie on a rank outside the group.
    if (draft.blocks.with_coordinate(from, over, draft.blocks.coordinate(to, over)) != to) {
      return {};
    }
    Exchange& group = groups[draft.blocks.with_coordinate(to, over, 0)];
    if (group.members.empty()) {
      for (std::size_t c = 0; c < size; ++c) {
        group.members.push_back(
            draft.blocks.with_coordinate(to, over, static_cast<std::int64_t>(c)));
      }
      group.tasks.assign(size, std::vector<const DraftTask*>(size, nullptr));
    }
    const DraftTask*& cell =
        group.tasks[static_cast<std::size_t>(draft.blocks.coordinate(from, over))]
                   [static_cast<std::size_t>(draft.blocks.coordinate(to, over))];
    if (cell != nullptr) return {};
    cell = &task;
  }
  std::vector<Exchange> out;
  for (auto& [rank, group] : groups) out.push_back(std::move(group));
  return out;
}

namespace {

std::int64_t elements_of(const Draft& draft, const DraftRef& ref) {
  std::int64_t elements = 0;
  for (const BlockId block : ref.blocks) {
    elements += draft.blocks.elements(draft.slot(ref).buffer, block);
  }
  return elements;
}

}  // namespace

bool is_regular(const Draft& draft, RunCheck& runs, const Exchange& exchange) {
  const std::size_t n = exchange.members.size();
  if (n < 2) return false;
  const bool self = exchange.tasks[0][0] != nullptr;
  std::int64_t size = -1;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const DraftTask* task = exchange.tasks[i][j];
      if ((task != nullptr) != (i != j || self)) return false;
      if (task == nullptr) continue;
      const std::int64_t elements = elements_of(draft, task->writes[0]);
      if (size >= 0 && elements != size) return false;
      if (!runs.is_run(task->reads[0]) || !runs.is_run(task->writes[0])) return false;
      size = elements;
    }
  }
  return true;
}

bool is_gather(const Exchange& exchange) {
  for (const auto& row : exchange.tasks) {
    const DraftRef* sent = nullptr;
    for (const DraftTask* task : row) {
      if (task == nullptr) continue;
      if (sent != nullptr &&
          (sent->slot != task->reads[0].slot || sent->blocks != task->reads[0].blocks)) {
        return false;
      }
      sent = &task->reads[0];
    }
  }
  return true;
}

}  // namespace harpe
