#include "lower/order.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "support/check.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

// Lists of tasks that grow at the end and share their beginnings. A list is the index of its last
// node, so equal lists of neighbouring cells have equal numbers. Appending the same task to a list
// twice gives the same list.
class TaskLists {
 public:
  static constexpr int kEmpty = 0;

  int grow(int list, int task) {
    const auto at = static_cast<std::size_t>(list);
    if (nodes_[at].task == task) return list;
    if (nodes_[at].grown_by == task) return nodes_[at].grown;
    const int grown = static_cast<int>(nodes_.size());
    nodes_[at].grown_by = task;
    nodes_[at].grown = grown;
    nodes_.push_back({.task = task, .before = list});
    return grown;
  }
  template <class Visit>
  void visit(int list, const Visit& visit) const {
    for (; list != kEmpty; list = nodes_[static_cast<std::size_t>(list)].before) {
      visit(nodes_[static_cast<std::size_t>(list)].task);
    }
  }

 private:
  struct Node {
    int task = -1;
    int before = kEmpty;
    int grown_by = -1;
    int grown = kEmpty;
  };
  std::vector<Node> nodes_ = {{}};
};

// A set of tasks in the order of insertion.
class TaskSet {
 public:
  explicit TaskSet(std::size_t tasks) : token_of_(tasks, 0) {}
  void clear() {
    ++token_;
    tasks_.clear();
  }
  void add(int task) {
    int& token = token_of_[static_cast<std::size_t>(task)];
    if (token == token_) return;
    token = token_;
    tasks_.push_back(task);
  }
  [[nodiscard]] const std::vector<int>& tasks() const { return tasks_; }

 private:
  std::vector<int> token_of_;
  int token_ = 1;
  std::vector<int> tasks_;
};

// The accesses to a slot, in sequential order.
class SlotHistory {
 public:
  SlotHistory(SlotIndex index, int entry) : index_(std::move(index)), previous_{entry} {
    cells_.resize(static_cast<std::size_t>(index_.size()));
  }

  // Adds the tasks that an access to these blocks waits for. Requires: a read finds the content
  // that it names, which the order of derivation guarantees.
  void depend(std::span<const BlockId> blocks, bool writes, const TaskLists& lists,
              TaskSet& after) const {
    bool on_content = false;   // waits for all accesses to the current content
    bool on_previous = false;  // waits for all accesses to the previous content
    Cell last;                 // neighbouring cells are usually equal
    SlotIndex::Cursor cursor;
    for (const BlockId block : blocks) {
      const SlotIndex::Place place = index_.locate(block, cursor);
      if (place.content != content_) {
        HP_CHECK(writes || content_ < 0, "a task reads a block its slot no longer holds");
        on_content = true;
        continue;
      }
      const Cell& cell = cells_[static_cast<std::size_t>(place.local)];
      if (cell.writer >= 0 && cell.writer != last.writer) after.add(cell.writer);
      if (writes && cell.readers != last.readers) add(cell.readers, lists, after);
      on_previous =
          on_previous || (cell.writer < 0 && (cell.readers == TaskLists::kEmpty || !writes));
      last = cell;
    }
    if (on_content) collect(lists, after);
    if (on_previous) add_previous(after);
  }

  // `scratch`: working memory.
  void record(std::span<const BlockId> blocks, bool writes, int task, TaskLists& lists,
              TaskSet& scratch) {
    SlotIndex::Cursor cursor;
    for (const BlockId block : blocks) {
      const SlotIndex::Place place = index_.locate(block, cursor);
      if (place.content != content_) begin_content(place.content, lists, scratch);
      Cell& cell = cells_[static_cast<std::size_t>(place.local)];
      if (cell == Cell()) touched_.push_back(place.local);
      if (writes) {
        cell = {.writer = task};
      } else {
        cell.readers = lists.grow(cell.readers, task);
      }
    }
  }

  // Adds every access that may still be running.
  void collect(const TaskLists& lists, TaskSet& after) const {
    if (touched_.empty()) add_previous(after);
    Cell last;
    for (const std::int64_t local : touched_) {
      const Cell& cell = cells_[static_cast<std::size_t>(local)];
      if (cell.writer >= 0 && cell.writer != last.writer) after.add(cell.writer);
      if (cell.readers != last.readers) add(cell.readers, lists, after);
      last = cell;
    }
  }

 private:
  struct Cell {
    int writer = -1;
    int readers = TaskLists::kEmpty;  // since the last write
    friend bool operator==(const Cell&, const Cell&) = default;
  };

  static void add(int list, const TaskLists& lists, TaskSet& after) {
    lists.visit(list, [&](int task) { after.add(task); });
  }
  void add_previous(TaskSet& after) const {
    for (const int task : previous_) after.add(task);
  }
  void begin_content(std::int64_t content, const TaskLists& lists, TaskSet& scratch) {
    scratch.clear();
    collect(lists, scratch);
    previous_ = scratch.tasks();
    for (const std::int64_t local : touched_) cells_[static_cast<std::size_t>(local)] = {};
    touched_.clear();
    content_ = content;
  }

  SlotIndex index_;
  std::vector<Cell> cells_;
  std::vector<std::int64_t> touched_;  // cells of the current content with an access
  std::int64_t content_ = -1;
  std::vector<int> previous_;  // accesses to the previous content
};

void sort_unique(std::vector<int>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

class Orderer {
 public:
  Orderer(Draft& draft, bool slots_alias)
      : draft_(draft), after_(draft.tasks.size()), scratch_(draft.tasks.size()) {
    const auto ranks = static_cast<std::size_t>(draft.blocks.ranks());
    slots_on_.resize(ranks);
    member_at_.assign(ranks, -1);
    std::vector<int> entries(ranks, -1);
    for (std::size_t i = 0; i < draft.tasks.size(); ++i) {
      const DraftTask& task = draft.tasks[i];
      if (task.kind == TaskKind::Entry && !task.is_barrier) {
        entries[task.rank.index()] = static_cast<int>(i);
      }
    }
    for (std::size_t s = 0; s < draft.slots.size(); ++s) {
      const DraftSlot& slot = draft.slots[s];
      const std::vector<bool> all(slot.holds.size(), true);
      histories_.emplace_back(SlotIndex(draft.blocks, draft.digits_of(static_cast<int>(s)),
                                        slots_alias ? slot.holds : all),
                              entries[slot.rank.index()]);
      slots_on_[slot.rank.index()].push_back(s);
    }
  }

  Checked<Ok> run(const TimeLimit& limit) {
    for (std::size_t begin = 0; begin < draft_.tasks.size();) {
      HP_REQUIRE_OK(limit.check(kLowering));
      const DraftTask& first = draft_.tasks[begin];
      std::size_t end = begin + 1;
      while (first.group >= 0 && end < draft_.tasks.size() &&
             draft_.tasks[end].group == first.group) {
        ++end;
      }
      order(begin, end);
      begin = end;
    }
    return Ok{};
  }

 private:
  // In a collective every rank accesses its own memory: what an access waits for, the member on
  // that memory's rank waits for. Any other task waits for its own accesses.
  void order(std::size_t begin, std::size_t end) {
    std::vector<std::vector<int>> after(end - begin);
    const bool grouped = draft_.tasks[begin].group >= 0;
    for (std::size_t i = begin; i < end && grouped; ++i) {
      member_at_[draft_.tasks[i].rank.index()] = static_cast<int>(i);
    }
    for (std::size_t i = begin; i < end; ++i) {
      for (const auto& [before, memory] : find_awaited(draft_.tasks[i])) {
        const int member = member_at_[memory.index()];
        const std::size_t at = member < 0 ? i : static_cast<std::size_t>(member);
        after[at - begin].push_back(member_on(before, memory));
      }
    }
    for (std::size_t i = begin; i < end; ++i) record(i);
    for (std::size_t i = begin; i < end; ++i) {
      sort_unique(after[i - begin]);
      draft_.tasks[i].after = std::move(after[i - begin]);
      if (!grouped) continue;
      member_at_[draft_.tasks[i].rank.index()] = -1;
      members_[{draft_.tasks[i].group, draft_.tasks[i].rank}] = static_cast<int>(i);
    }
  }

  // A collective has finished with a rank's memory when the member of that rank is over.
  int member_on(int task, RankId rank) const {
    const std::int32_t group = draft_.tasks[static_cast<std::size_t>(task)].group;
    if (group < 0) return task;
    const auto found = members_.find({group, rank});
    return found == members_.end() ? task : found->second;
  }

  // The tasks that a task's accesses wait for, with the rank of the memory.
  const std::vector<std::pair<int, RankId>>& find_awaited(const DraftTask& task) {
    awaited_.clear();
    const auto keep = [&](RankId memory) {
      for (const int before : after_.tasks()) awaited_.emplace_back(before, memory);
    };
    if (task.kind == TaskKind::Exit && !task.is_barrier) {
      after_.clear();
      for (const std::size_t slot : slots_on_[task.rank.index()]) {
        histories_[slot].collect(lists_, after_);
      }
      keep(task.rank);
      return awaited_;
    }
    for (const auto* refs : {&task.reads, &task.writes}) {
      for (const DraftRef& ref : *refs) {
        after_.clear();
        histories_[static_cast<std::size_t>(ref.slot)].depend(
            ref.blocks, ref.mode != WriteMode::Read, lists_, after_);
        keep(draft_.slot(ref).rank);
      }
    }
    return awaited_;
  }

  void record(std::size_t i) {
    const DraftTask& task = draft_.tasks[i];
    for (const auto* refs : {&task.reads, &task.writes}) {
      for (const DraftRef& ref : *refs) {
        histories_[static_cast<std::size_t>(ref.slot)].record(
            ref.blocks, ref.mode != WriteMode::Read, static_cast<int>(i), lists_, scratch_);
      }
    }
  }

  Draft& draft_;
  std::vector<SlotHistory> histories_;
  TaskLists lists_;
  TaskSet after_;    // for a ref, or for an Exit
  TaskSet scratch_;  // for histories
  std::vector<std::pair<int, RankId>> awaited_;
  std::vector<std::vector<std::size_t>> slots_on_;  // per rank
  std::vector<int> member_at_;  // per rank: its member of the current group, or -1
  std::map<std::pair<std::int32_t, RankId>, int> members_;
};

// Counts pairs of a rank and another rank whose Entry it awaits.
std::size_t pairs_at_entry(const Draft& draft) {
  std::set<std::pair<RankId, RankId>> pairs;
  for (const DraftTask& task : draft.tasks) {
    for (const int before : task.after) {
      const DraftTask& other = draft.tasks[static_cast<std::size_t>(before)];
      const bool is_entry = other.kind == TaskKind::Entry && !other.is_barrier;
      if (is_entry && other.rank != task.rank) pairs.emplace(task.rank, other.rank);
    }
  }
  return pairs.size();
}

void fold_entry(Draft& draft) {
  const int barrier = barrier_of(draft, TaskKind::Entry);
  const auto is_entry = [&](int i) {
    const DraftTask& task = draft.tasks[static_cast<std::size_t>(i)];
    return task.kind == TaskKind::Entry && !task.is_barrier;
  };
  for (DraftTask& task : draft.tasks) {
    const bool remote = std::ranges::any_of(task.after, [&](int before) {
      return is_entry(before) && draft.tasks[static_cast<std::size_t>(before)].rank != task.rank;
    });
    if (!remote) continue;
    std::erase_if(task.after, is_entry);
    task.after.push_back(barrier);
    sort_unique(task.after);
  }
  for (int i = 0; i < static_cast<int>(draft.tasks.size()); ++i) {
    if (is_entry(i)) draft.tasks[static_cast<std::size_t>(barrier)].after.push_back(i);
  }
}

}  // namespace

std::size_t most_pairs(const Draft& draft) {
  return static_cast<std::size_t>(2 * draft.blocks.ranks());
}

int barrier_of(const Draft& draft, TaskKind boundary) {
  const auto found = std::ranges::find_if(
      draft.tasks, [&](const DraftTask& task) { return task.is_barrier && task.kind == boundary; });
  HP_CHECK(found != draft.tasks.end(), "the draft has a barrier node at each boundary");
  return static_cast<int>(found - draft.tasks.begin());
}

Checked<Ok> order_by_memory(Draft& draft, bool slots_alias, const TimeLimit& limit) {
  return Orderer(draft, slots_alias).run(limit);
}

void fold_entries(Draft& draft) {
  if (pairs_at_entry(draft) > most_pairs(draft)) fold_entry(draft);
}

}  // namespace harpe
