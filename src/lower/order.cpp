#include "lower/order.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "support/check.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

// What has touched a slot, in sequential order.
class SlotHistory {
 public:
  SlotHistory(SlotIndex index, int entry) : index_(std::move(index)), previous_{entry} {
    cells_.resize(static_cast<std::size_t>(index_.size()));
  }

  // Requires: a read finds the content it names, which the order of derivation guarantees.
  void depend(BlockId block, bool writes, std::vector<int>& after) const {
    const SlotIndex::Place place = index_.locate(block);
    if (place.content != content_) {
      HP_CHECK(writes || content_ < 0, "a task reads a block its slot no longer holds");
      collect(after);
      return;
    }
    const Cell& cell = cells_[static_cast<std::size_t>(place.local)];
    if (cell.writer >= 0) after.push_back(cell.writer);
    if (writes) after.insert(after.end(), cell.readers.begin(), cell.readers.end());
    if (cell.writer < 0 && (cell.readers.empty() || !writes)) {
      after.insert(after.end(), previous_.begin(), previous_.end());
    }
  }

  void record(BlockId block, bool writes, int task) {
    const SlotIndex::Place place = index_.locate(block);
    if (place.content != content_) {
      std::vector<int> accesses;
      collect(accesses);
      std::ranges::sort(accesses);
      accesses.erase(std::ranges::unique(accesses).begin(), accesses.end());
      previous_ = std::move(accesses);
      for (const std::int64_t local : touched_) cells_[static_cast<std::size_t>(local)] = {};
      touched_.clear();
      content_ = place.content;
    }
    Cell& cell = cells_[static_cast<std::size_t>(place.local)];
    if (cell.writer < 0 && cell.readers.empty()) touched_.push_back(place.local);
    if (writes) {
      cell.writer = task;
      cell.readers.clear();
    } else if (cell.readers.empty() || cell.readers.back() != task) {
      cell.readers.push_back(task);
    }
  }

  // Every access that may still be under way.
  void collect(std::vector<int>& after) const {
    if (touched_.empty()) after.insert(after.end(), previous_.begin(), previous_.end());
    for (const std::int64_t local : touched_) {
      const Cell& cell = cells_[static_cast<std::size_t>(local)];
      if (cell.writer >= 0) after.push_back(cell.writer);
      after.insert(after.end(), cell.readers.begin(), cell.readers.end());
    }
  }

 private:
  struct Cell {
    int writer = -1;
    std::vector<int> readers;  // since the writer
  };
  SlotIndex index_;
  std::vector<Cell> cells_;
  std::vector<std::int64_t> touched_;  // cells of the current content with an access
  std::int64_t content_ = -1;
  std::vector<int> previous_;  // accesses to the content before
};

void sort_unique(std::vector<int>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

class Orderer {
 public:
  Orderer(Draft& draft, bool slots_alias) : draft_(draft) {
    std::vector<int> entries(static_cast<std::size_t>(draft.blocks.ranks()), -1);
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
    }
  }

  void run() {
    for (std::size_t begin = 0; begin < draft_.tasks.size();) {
      const DraftTask& first = draft_.tasks[begin];
      std::size_t end = begin + 1;
      while (first.group >= 0 && end < draft_.tasks.size() &&
             draft_.tasks[end].group == first.group) {
        ++end;
      }
      order(begin, end);
      begin = end;
    }
  }

 private:
  // In a collective every rank reads and writes its own memory: what an access waits for, the
  // member on that memory's rank waits for. Any other task waits for its own accesses.
  void order(std::size_t begin, std::size_t end) {
    std::vector<std::vector<int>> after(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      for (const auto& [before, memory] : find_awaited(draft_.tasks[i])) {
        std::size_t at = i;
        for (std::size_t m = begin; m < end && draft_.tasks[i].group >= 0; ++m) {
          if (draft_.tasks[m].rank == memory) at = m;
        }
        after[at - begin].push_back(member_on(before, memory));
      }
    }
    for (std::size_t i = begin; i < end; ++i) record(i);
    for (std::size_t i = begin; i < end; ++i) {
      sort_unique(after[i - begin]);
      draft_.tasks[i].after = std::move(after[i - begin]);
      if (draft_.tasks[i].group >= 0) {
        members_[{draft_.tasks[i].group, draft_.tasks[i].rank}] = static_cast<int>(i);
      }
    }
  }

  // A collective is done with a rank's memory when that rank's member is over.
  int member_on(int task, RankId rank) const {
    const std::int32_t group = draft_.tasks[static_cast<std::size_t>(task)].group;
    if (group < 0) return task;
    const auto found = members_.find({group, rank});
    return found == members_.end() ? task : found->second;
  }

  // What a task's accesses wait for, and on which rank the memory is.
  std::vector<std::pair<int, RankId>> find_awaited(const DraftTask& task) const {
    std::vector<std::pair<int, RankId>> awaited;
    std::vector<int> after;
    const auto keep = [&](RankId memory) {
      sort_unique(after);
      for (const int before : after) awaited.emplace_back(before, memory);
      after.clear();
    };
    if (task.kind == TaskKind::Exit && !task.is_barrier) {
      for (std::size_t s = 0; s < draft_.slots.size(); ++s) {
        if (draft_.slots[s].rank == task.rank) histories_[s].collect(after);
      }
      keep(task.rank);
      return awaited;
    }
    for (const auto* refs : {&task.reads, &task.writes}) {
      for (const DraftRef& ref : *refs) {
        for (const BlockId block : ref.blocks) {
          histories_[static_cast<std::size_t>(ref.slot)].depend(block, ref.mode != WriteMode::Read,
                                                                after);
        }
        keep(draft_.slot(ref).rank);
      }
    }
    return awaited;
  }

  void record(std::size_t i) {
    const DraftTask& task = draft_.tasks[i];
    for (const auto* refs : {&task.reads, &task.writes}) {
      for (const DraftRef& ref : *refs) {
        for (const BlockId block : ref.blocks) {
          histories_[static_cast<std::size_t>(ref.slot)].record(block, ref.mode != WriteMode::Read,
                                                                static_cast<int>(i));
        }
      }
    }
  }

  Draft& draft_;
  std::vector<SlotHistory> histories_;
  std::map<std::pair<std::int32_t, RankId>, int> members_;
};

// More pairs of ranks than this are cheaper met at one counter.
std::size_t most_pairs(const Draft& draft) {
  return static_cast<std::size_t>(2 * draft.blocks.ranks());
}

// Pairs of a waiting rank and another whose Entry it awaits.
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

int barrier_of(const Draft& draft, TaskKind boundary) {
  const auto found = std::ranges::find_if(
      draft.tasks, [&](const DraftTask& task) { return task.is_barrier && task.kind == boundary; });
  HP_CHECK(found != draft.tasks.end(), "the draft has a barrier node at each boundary");
  return static_cast<int>(found - draft.tasks.begin());
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

void fold_exit(Draft& draft) {
  const int barrier = barrier_of(draft, TaskKind::Exit);
  std::vector<int> all;
  for (DraftTask& task : draft.tasks) {
    if (task.kind != TaskKind::Exit || task.is_barrier) continue;
    all.insert(all.end(), task.after.begin(), task.after.end());
    task.after = {barrier};
  }
  sort_unique(all);
  draft.tasks[static_cast<std::size_t>(barrier)].after = std::move(all);
}

HP_CLONES void join_rows(std::int32_t* own, const std::int32_t* other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) own[i] = std::max(own[i], other[i]);
}

// Vector clocks over strands (verify/order.h): clock[s] = position of the last task of strand s
// known to be over. A lane is one strand; puts to different ranks are several, and puts that are
// signalled one by one each their own.
class Reducer {
 public:
  Reducer(Draft& draft, bool may_fold) : draft_(draft), may_fold_(may_fold) {
    std::map<std::pair<RankId, LaneKind>, int> lanes;
    std::map<std::tuple<RankId, LaneKind, RankId>, int> strands;
    for (const DraftTask& task : draft.tasks) {
      const auto fresh = static_cast<int>(length_.size());
      const bool singly = task.fence == Fence::Put || task.fence == Fence::Imm;
      const bool alone = task.is_barrier || (is_put(task) && singly);
      const RankId to = is_put(task) ? destination_of(draft, task) : task.rank;
      const int strand =
          alone ? fresh : strands.try_emplace({task.rank, task.lane, to}, fresh).first->second;
      if (strand == fresh) length_.push_back(0);
      strand_.push_back(strand);
      position_.push_back(length_[static_cast<std::size_t>(strand)]++);
      const auto lane_count = static_cast<int>(lanes.size());
      lane_.push_back(task.is_barrier
                          ? -1
                          : lanes.try_emplace({task.rank, task.lane}, lane_count).first->second);
    }
    has_entry_counter_ = std::ranges::any_of(draft.tasks, [](const DraftTask& task) {
      return task.kind == TaskKind::Entry && task.is_barrier && !task.after.empty();
    });
    last_.assign(lanes.size(), -1);
    puts_.resize(lanes.size());
    clocks_.resize(draft.tasks.size());
    before_put_.assign(draft.tasks.size(), -1);
    keep_last_of_strands();
    count_uses();
  }

  Checked<Ok> run() {
    std::size_t begin = 0;
    while (begin < draft_.tasks.size() && draft_.tasks[begin].kind != TaskKind::Exit) {
      HP_REQUIRE_OK(check_memory(begin));
      std::size_t end = begin + 1;
      const std::int32_t group = draft_.tasks[begin].group;
      while (group >= 0 && end < draft_.tasks.size() && draft_.tasks[end].group == group) ++end;
      reduce(begin, end);
      begin = end;
    }
    keeps_clocks_ = true;
    reduce_exits(begin);
    return Ok{};
  }

 private:
  using Clock = std::vector<std::int32_t>;

  // How long clocks are, and how many are looked at together, is known only on the way. `done`: so
  // many tasks are reduced.
  [[nodiscard]] Checked<Ok> check_memory(std::size_t done) const {
    constexpr double kMost = 8.0 * (1 << 30);
    const double bytes = static_cast<double>(made_) * static_cast<double>(length_.size()) *
                         static_cast<double>(sizeof(std::int32_t));
    if (bytes <= kMost) return Ok{};
    return with_note(
        make_diag(DiagCode::I503, {{"nest", draft_.program.nests.back().name},
                                   {"tasks", draft_.tasks.size()},
                                   {"ranks", draft_.mesh.ranks()},
                                   {"needed", "8 GiB and more"},
                                   {"limit", done}}),
        "what a rank puts to each other rank is told apart in all that follows, and under `fence "
        "put` and `imm` each put for itself");
  }

  // Each for itself; but all behind one counter, where many would still wait for many, or where a
  // rank could begin again before all have begun: they count on one counter as well.
  void reduce_exits(std::size_t begin) {
    const std::vector<DraftTask> exits(draft_.tasks.begin() + static_cast<std::ptrdiff_t>(begin),
                                       draft_.tasks.end());
    const std::vector<int> last = last_;
    std::size_t pairs = 0;
    for (std::size_t i = begin; i < draft_.tasks.size(); ++i) {
      reduce(i, i + 1);
      pairs += others_awaited(draft_.tasks[i]);
      if (!may_fold_ || (pairs <= most_pairs(draft_) && knows_entries(i))) continue;
      std::ranges::copy(exits, draft_.tasks.begin() + static_cast<std::ptrdiff_t>(begin));
      last_ = last;
      fold_exit(draft_);
      may_fold_ = false;
      reduce_exits(begin);
      return;
    }
  }

  // Where entries are behind a counter: whether all of them are over before the Exit.
  [[nodiscard]] bool knows_entries(std::size_t exit) const {
    if (draft_.tasks[exit].is_barrier || !has_entry_counter_) return true;
    for (std::size_t i = 0; i < draft_.tasks.size(); ++i) {
      if (draft_.tasks[i].kind != TaskKind::Entry) break;
      const auto strand = static_cast<std::size_t>(strand_[i]);
      if (!draft_.tasks[i].is_barrier && clocks_[exit][strand] < position_[i]) return false;
    }
    return true;
  }

  [[nodiscard]] std::size_t others_awaited(const DraftTask& task) const {
    std::set<RankId> others;
    for (const int before : task.after) {
      const DraftTask& other = draft_.tasks[static_cast<std::size_t>(before)];
      if (!other.is_barrier && other.rank != task.rank) others.insert(other.rank);
    }
    return task.is_barrier ? 0 : others.size();
  }

  // The last task of a strand that a task waits for says that those before it are over.
  void keep_last_of_strands() {
    std::vector<int> waiting(length_.size(), -1);  // per strand: the last task that was looked at
    for (std::size_t i = 0; i < draft_.tasks.size(); ++i) {
      std::vector<int>& after = draft_.tasks[i].after;
      std::ranges::sort(after, std::ranges::greater{});
      std::erase_if(after, [&](int before) {
        int& last = waiting[static_cast<std::size_t>(strand_[static_cast<std::size_t>(before)])];
        return std::exchange(last, static_cast<int>(i)) == static_cast<int>(i);
      });
      after.shrink_to_fit();
    }
  }

  // How many later tasks look at a task's clock: those behind it, and the next of its lane.
  void count_uses() {
    uses_.assign(draft_.tasks.size(), 0);
    std::vector<int> last(last_.size(), -1);
    for (std::size_t i = 0; i < draft_.tasks.size(); ++i) {
      for (const int before : draft_.tasks[i].after) ++uses_[static_cast<std::size_t>(before)];
      if (lane_[i] < 0) continue;
      int& previous = last[static_cast<std::size_t>(lane_[i])];
      if (previous >= 0) ++uses_[static_cast<std::size_t>(previous)];
      previous = static_cast<int>(i);
    }
  }

  // Clocks are as long as there are strands: those that nobody looks at any more are used again.
  void release(int task) {
    if (keeps_clocks_ || task < 0) return;
    const auto at = static_cast<std::size_t>(task);
    if (--uses_[at] == 0) free_.push_back(std::move(clocks_[at]));
  }

  static void join(Clock& clock, const Clock& other) {
    join_rows(clock.data(), other.data(), clock.size());
  }

  // What a task knows by its lane alone: of a put that it was posted, not that it has arrived.
  void begin_behind(int previous) {
    if (previous < 0) {
      known_.assign(length_.size(), -1);
      return;
    }
    const auto at = static_cast<std::size_t>(previous);
    known_ = clocks_[at];
    if (is_put(draft_.tasks[at])) known_[static_cast<std::size_t>(strand_[at])] = before_put_[at];
  }

  // Events and barriers behind a put drain its lane; a word does what its fence says.
  void join_signalled(Clock& clock, std::size_t from, const DraftTask& to) const {
    join(clock, clocks_[from]);
    const bool drains = to.is_barrier || to.rank == draft_.tasks[from].rank;
    if (!drains || !is_put(draft_.tasks[from])) return;
    for (const std::size_t put : puts_[static_cast<std::size_t>(lane_[from])]) {
      if (put > from) break;
      std::int32_t& known = clock[static_cast<std::size_t>(strand_[put])];
      known = std::max(known, position_[put]);
    }
  }

  // The members of a collective meet: whoever waits for one knows what all of them waited for, but
  // not that the others are over.
  void reduce(std::size_t begin, std::size_t end) {
    met_.assign(length_.size(), -1);
    for (std::size_t i = begin; i < end; ++i) {
      const int previous = lane_[i] < 0 ? -1 : last_[static_cast<std::size_t>(lane_[i])];
      begin_behind(previous);
      std::vector<int> after = std::move(draft_.tasks[i].after);
      draft_.tasks[i].after.clear();
      // Later tasks first: an edge can only be implied by a later one.
      std::ranges::sort(after, std::ranges::greater{});
      for (const int before : after) {
        const auto b = static_cast<std::size_t>(before);
        if (known_[static_cast<std::size_t>(strand_[b])] >= position_[b]) continue;
        draft_.tasks[i].after.push_back(before);
        join_signalled(known_, b, draft_.tasks[i]);
      }
      std::ranges::sort(draft_.tasks[i].after);
      join(met_, known_);
      for (const int before : after) release(before);
      release(previous);
    }
    for (std::size_t i = begin; i < end; ++i) finish(i);
  }

  void finish(std::size_t i) {
    const auto strand = static_cast<std::size_t>(strand_[i]);
    if (free_.empty()) {
      ++made_;
    } else {
      clocks_[i] = std::move(free_.back());
      free_.pop_back();
    }
    clocks_[i] = met_;
    before_put_[i] = met_[strand];
    clocks_[i][strand] = position_[i];
    if (lane_[i] < 0) return;
    last_[static_cast<std::size_t>(lane_[i])] = static_cast<int>(i);
    if (is_put(draft_.tasks[i])) puts_[static_cast<std::size_t>(lane_[i])].push_back(i);
  }

  Draft& draft_;
  bool may_fold_;
  bool has_entry_counter_ = false;
  std::vector<int> lane_;  // of barriers: -1
  std::vector<int> strand_;
  std::vector<std::int32_t> position_;  // in its strand
  std::vector<std::int32_t> length_;
  std::vector<int> last_;                       // per lane
  std::vector<std::vector<std::size_t>> puts_;  // per lane, so far
  std::vector<Clock> clocks_;                   // per task, while somebody looks at it
  std::vector<std::int32_t> uses_;              // per task: who still will
  std::vector<Clock> free_;
  std::int64_t made_ = 0;                 // clocks, in use and free
  bool keeps_clocks_ = false;             // exits may be reduced twice
  Clock met_, known_;                     // of the tasks at hand
  std::vector<std::int32_t> before_put_;  // per task: what it knew of its own strand when it began
};

}  // namespace

void order_by_memory(Draft& draft, bool slots_alias) { Orderer(draft, slots_alias).run(); }

void fold_entries(Draft& draft) {
  if (pairs_at_entry(draft) > most_pairs(draft)) fold_entry(draft);
}

Checked<Ok> reduce_order(Draft& draft, bool may_fold) { return Reducer(draft, may_fold).run(); }

}  // namespace harpe
