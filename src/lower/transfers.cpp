#include "lower/transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lower/exchange.h"

namespace harpe {
namespace {

bool needs_runs(Via via) { return via == Via::Nccl || via == Via::Proxy; }

// Makes a slot for exactly these blocks: digits in which they differ are held whole.
class PackSlots {
 public:
  explicit PackSlots(Draft& draft) : draft_(draft) {}

  int slot(const DraftRef& ref, RankId rank, std::string name, DType dtype) {
    const auto& digits = draft_.digits_of(ref.slot);
    Region region = draft_.blocks.region_of(digits, ref.blocks.front());
    for (const BlockId block : ref.blocks) {
      const Region other = draft_.blocks.region_of(digits, block);
      for (std::size_t i = 0; i < region.size(); ++i) {
        if (other[i] != region[i]) region[i] = kAll;
      }
    }
    std::vector<bool> holds = holds_of(draft_.blocks, digits, region);
    while (true) {  // another step may send fewer blocks, but a slot has one shape
      const auto [it, fresh] =
          known_.try_emplace({name, rank}, static_cast<int>(draft_.slots.size()));
      if (fresh) {
        draft_.slots.push_back({.rank = rank,
                                .name = name,
                                .buffer = draft_.slot(ref).buffer,
                                .level = Level::Pack,
                                .dtype = dtype,
                                .holds = std::move(holds)});
        return it->second;
      }
      if (draft_.slots[static_cast<std::size_t>(it->second)].holds == holds) return it->second;
      name += "x";
    }
  }

 private:
  Draft& draft_;
  std::map<std::pair<std::string, RankId>, int> known_;
};

DraftTask local_copy(const DraftTask& like, TaskKind kind, RankId rank, int from, int to,
                     const DraftRef& moved) {
  DraftTask task;
  task.rank = rank;
  task.queue = QueueKind::Sm;
  task.kind = kind;
  task.instance = like.instance;
  task.position = like.position;
  task.reads = {{from, WriteMode::Read, moved.blocks}};
  task.writes = {{to, WriteMode::Set, moved.blocks, moved.choice, moved.value}};
  return task;
}

}  // namespace

void pack_strided_transfers(Draft& draft) {
  PackSlots slots(draft);
  RunCheck runs(draft);
  std::vector<DraftTask> out;
  for (std::size_t begin = 0; begin < draft.tasks.size();) {
    const std::size_t end = instance_end(draft, begin);
    std::vector<DraftTask> packs;
    std::vector<DraftTask> unpacks;
    std::vector<DraftTask> copies;
    for (std::size_t i = begin; i < end; ++i) {
      DraftTask task = std::move(draft.tasks[i]);
      for (std::size_t p = 0;
           task.kind == TaskKind::Copy && needs_runs(task.via) && p < task.writes.size(); ++p) {
        const RankId from = draft.slot(task.reads[p]).rank;
        const RankId to = draft.slot(task.writes[p]).rank;
        const std::int64_t ranks = draft.blocks.ranks();
        // All parts of a transfer are packed before the first is sent, so each needs its own slot.
        const std::string distance = std::to_string((to.value - from.value + ranks) % ranks) + "." +
                                     std::to_string(task.piece);
        const DraftSlot target = draft.slot(task.writes[p]);
        if (!runs.is_run(task.reads[p])) {
          const int slot =
              slots.slot(task.reads[p], from, target.name + ".pack" + distance, target.dtype);
          packs.push_back(
              local_copy(task, TaskKind::Pack, from, task.reads[p].slot, slot, task.writes[p]));
          task.reads[p].slot = slot;
        }
        if (!runs.is_run(task.writes[p])) {
          const int slot =
              slots.slot(task.writes[p], to, target.name + ".unpack" + distance, target.dtype);
          unpacks.push_back(
              local_copy(task, TaskKind::Unpack, to, slot, task.writes[p].slot, task.writes[p]));
          task.writes[p].slot = slot;
        }
      }
      copies.push_back(std::move(task));
    }
    for (auto* part : {&packs, &copies, &unpacks}) {
      out.insert(out.end(), std::make_move_iterator(part->begin()),
                 std::make_move_iterator(part->end()));
    }
    begin = end;
  }
  draft.tasks = std::move(out);
}

void merge_transfers(Draft& draft) {
  using Key = std::tuple<std::int64_t, RankId, QueueKind, Fence, RankId, RankId, How, int,
                         std::vector<int>>;
  std::map<Key, std::size_t> known;
  std::vector<DraftTask>& tasks = draft.tasks;
  std::size_t kept = 0;  // tasks kept so far, at the front
  // Per slot: the last kept task that reads or writes it. A copy merged into task k runs at k's
  // time, so no later task may have produced its source or used its destination.
  std::vector<std::int64_t> last_read(draft.slots.size(), -1);
  std::vector<std::int64_t> last_write(draft.slots.size(), -1);
  const auto may_join = [&](const DraftTask& task, std::int64_t k) {
    return std::ranges::all_of(task.reads,
                               [&](const DraftRef& ref) {
                                 return last_write[static_cast<std::size_t>(ref.slot)] < k;
                               }) &&
           std::ranges::all_of(task.writes, [&](const DraftRef& ref) {
             return last_read[static_cast<std::size_t>(ref.slot)] < k &&
                    last_write[static_cast<std::size_t>(ref.slot)] <= k;
           });
  };
  const auto note = [&](const DraftTask& task, std::int64_t k) {
    for (const DraftRef& ref : task.reads) {
      std::int64_t& last = last_read[static_cast<std::size_t>(ref.slot)];
      last = std::max(last, k);
    }
    for (const DraftRef& ref : task.writes) {
      std::int64_t& last = last_write[static_cast<std::size_t>(ref.slot)];
      last = std::max(last, k);
    }
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    DraftTask& task = tasks[i];
    auto at = static_cast<std::int64_t>(kept);
    if (task.kind == TaskKind::Copy) {
      const Key key{task.position,
                    task.rank,
                    task.queue,
                    task.fence,
                    draft.slot(task.reads[0]).rank,
                    draft.slot(task.writes[0]).rank,
                    task.how,
                    task.piece,
                    task.over};
      const auto [it, fresh] = known.try_emplace(key, kept);
      if (!fresh && may_join(task, static_cast<std::int64_t>(it->second))) {
        at = static_cast<std::int64_t>(it->second);
        note(task, at);
        DraftTask& first = tasks[it->second];
        first.reads.insert(first.reads.end(), task.reads.begin(), task.reads.end());
        first.writes.insert(first.writes.end(), task.writes.begin(), task.writes.end());
        continue;
      }
    }
    note(task, at);
    if (kept != i) tasks[kept] = std::move(task);
    ++kept;
  }
  tasks.resize(kept);
}

}  // namespace harpe
