#include "exec/cuda/executor/wiring.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "exec/cuda/device/copy_args.h"
#include "exec/describe.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

class Wirer {
 public:
  Wirer(const Plan& plan, const Groups& groups) : plan_(plan), groups_(groups) {
    wiring_.tasks.resize(plan.tasks.size());
    wiring_.pages.resize(static_cast<std::size_t>(plan.mesh.ranks()));
    wiring_.sequence.resize(wiring_.pages.size());
    find_boundaries();
  }

  Wiring wire() {
    wire_entries();
    wire_exits();
    wire_syncs();
    wire_barriers();
    wire_collectives();
    for (std::size_t rank = 0; rank < wiring_.sequence.size(); ++rank) put_in_order(rank);
    return std::move(wiring_);
  }

 private:
  [[nodiscard]] TaskWiring& at(TaskId task) { return wiring_.tasks[task.index()]; }
  [[nodiscard]] LaneId lane_of(TaskId task) const { return plan_.tasks[task.index()].lane; }

  std::int32_t add_word(RankId rank, Word word) {
    std::vector<Word>& page = wiring_.pages[rank.index()];
    page.push_back(std::move(word));
    return static_cast<std::int32_t>(page.size()) - 1;
  }

  void add_edge(TaskId from, TaskId to) {
    std::vector<TaskId>& after = at(to).after;
    if (lane_of(from) != lane_of(to) && std::ranges::find(after, from) == after.end()) {
      after.push_back(from);
    }
  }

  void find_boundaries() {
    const std::size_t ranks = wiring_.pages.size();
    entries_.resize(ranks);
    exits_.resize(ranks);
    is_left_alone_.assign(ranks, true);
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      const RankId rank = rank_of(plan_, task);
      if (is_entry(task)) entries_[rank.index()] = task;
      if (plan_.tasks[i].kind == TaskKind::Exit) exits_[rank.index()] = task;
      for (const std::vector<Ref>* refs : {&plan_.tasks[i].reads, &plan_.tasks[i].writes}) {
        for (const Ref& ref : *refs) {
          const Alloc& alloc = plan_.allocs[ref.alloc.index()];
          if (alloc.level == Level::Home && alloc.rank != rank) {
            is_left_alone_[alloc.rank.index()] = false;
          }
        }
      }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      HP_CHECK(entries_[rank].valid() && exits_[rank].valid(), "every rank has Entry and Exit");
    }
  }

  [[nodiscard]] bool is_entry(TaskId task) const {
    return plan_.tasks[task.index()].kind == TaskKind::Entry;
  }

  // Whether all that waits for the Entry of that task's rank needs is a credit.
  [[nodiscard]] bool gives_credit(TaskId task) const {
    return is_entry(task) && is_left_alone_[rank_of(plan_, task).index()];
  }

  // Every lane of a rank begins an execution behind its Entry, which begins the epoch.
  void wire_entries() {
    std::map<LaneId, TaskId> firsts;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      firsts.emplace(plan_.tasks[i].lane, TaskId(static_cast<std::int64_t>(i)));
    }
    for (const auto& [lane, first] : firsts) {
      const TaskId entry = entries_[plan_.lanes[lane.index()].rank.index()];
      if (entry != first) add_edge(entry, first);
    }
  }

  // Once for each pair of ranks.
  void wire_credit(RankId from, RankId to) {
    if (from == to || !credits_.emplace(from, to).second) return;
    const TaskId exit = exits_[from.index()];
    const std::int32_t word = add_word(to, {.kind = WordKind::Credit,
                                            .index = static_cast<std::int32_t>(from.value),
                                            .arrivals = 1,
                                            .producers = {exit}});
    at(exit).raises.push_back({.rank = to, .word = word, .added = 0});
    at(entries_[to.index()]).waits.push_back(word);
  }

  // A rank's Exit waits for others when all the rest is over: a kernel that waits early takes a
  // multiprocessor from one that needs all of them.
  void wire_exits() {
    std::map<LaneId, TaskId> lasts;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      lasts[plan_.tasks[i].lane] = TaskId(static_cast<std::int64_t>(i));
    }
    for (const auto& [lane, last] : lasts) {
      const TaskId exit = exits_[plan_.lanes[lane.index()].rank.index()];
      if (exit != last) add_edge(last, exit);
    }
  }

  void wire_syncs() {
    for (std::size_t i = 0; i < plan_.syncs.size(); ++i) {
      const Sync& sync = plan_.syncs[i];
      const RankId to = rank_of(plan_, sync.to);
      const bool within = rank_of(plan_, sync.from) == to;
      // Every lane is behind its Entry.
      if (within && is_entry(sync.from)) continue;
      if (gives_credit(sync.from)) {
        wire_credit(rank_of(plan_, sync.from), to);
        continue;
      }
      if (within && (!groups_.is_inside(sync.to) || lane_of(sync.from) == lane_of(sync.to))) {
        add_edge(sync.from, sync.to);
        continue;
      }
      const std::uint32_t granules = within ? 0 : granules_of(plan_.tasks[sync.from.index()]);
      const std::int32_t word =
          add_word(to, {.kind = WordKind::Sync,
                        .index = static_cast<std::int32_t>(i),
                        .arrivals = std::max(1, static_cast<std::int32_t>(granules)),
                        .producers = {sync.from}});
      at(sync.from).raises.push_back({.rank = to, .word = word, .added = granules});
      at(sync.to).waits.push_back(word);
    }
  }

  // A word on every rank that waits; each `from` counts on all of them.
  void wire_barriers() {
    for (std::size_t i = 0; i < plan_.barriers.size(); ++i) {
      const Barrier& barrier = plan_.barriers[i];
      if (std::ranges::all_of(barrier.from, [&](TaskId from) { return gives_credit(from); })) {
        for (const TaskId from : barrier.from) {
          for (const TaskId to : barrier.to) {
            wire_credit(rank_of(plan_, from), rank_of(plan_, to));
          }
        }
        continue;
      }
      std::map<RankId, std::int32_t> words;
      for (const TaskId to : barrier.to) {
        const RankId rank = rank_of(plan_, to);
        if (!words.contains(rank)) {
          words[rank] = add_word(rank, {.kind = WordKind::Barrier,
                                        .index = static_cast<std::int32_t>(i),
                                        .arrivals = static_cast<std::int32_t>(barrier.from.size()),
                                        .producers = barrier.from});
        }
        at(to).waits.push_back(words[rank]);
      }
      for (const TaskId from : barrier.from) {
        for (const auto& [rank, word] : words) {
          at(from).raises.push_back({.rank = rank, .word = word, .added = 1});
        }
      }
    }
  }

  void wire_collectives() {
    std::map<std::int32_t, std::vector<TaskId>> groups;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (plan_.tasks[i].kind != TaskKind::Collective) continue;
      groups[plan_.tasks[i].group].emplace_back(static_cast<std::int64_t>(i));
    }
    for (const auto& [group, members] : groups) {
      Word word{.kind = WordKind::Arrival,
                .index = group,
                .arrivals = static_cast<std::int32_t>(members.size()),
                .producers = members};
      for (const TaskId member : members) {
        const RankId rank = rank_of(plan_, member);
        word.kind = WordKind::Arrival;
        const std::int32_t arrival = add_word(rank, word);
        word.kind = WordKind::Pulled;
        const std::int32_t pulled = add_word(rank, word);
        at(member).arrival = arrival;
        at(member).pulled = pulled;
        for (const TaskId other : members) {
          at(other).arrivals.push_back({.rank = rank, .word = arrival, .added = 1});
          at(other).departures.push_back({.rank = rank, .word = pulled, .added = 1});
        }
      }
    }
  }

  // A lane's tasks in their order, each once everything it is `after` stands before it; lanes of
  // copy engines first, for what else waits inside kernels for them.
  void put_in_order(std::size_t rank) {
    using Place = std::pair<bool, LaneId>;  // whether behind lanes of copy engines
    std::map<Place, std::vector<TaskId>> lanes;
    std::size_t left = 0;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (rank_of(plan_, task).index() != rank) continue;
      const LaneId lane = plan_.tasks[i].lane;
      lanes[{plan_.lanes[lane.index()].kind != LaneKind::Ce, lane}].push_back(task);
      ++left;
    }
    std::vector<bool> placed(plan_.tasks.size(), false);
    std::map<Place, std::size_t> heads;
    while (left > 0) {
      const std::size_t before = left;
      for (const auto& [place, tasks] : lanes) {
        std::size_t& head = heads[place];
        while (head < tasks.size() &&
               std::ranges::all_of(
                   at(tasks[head]).after, [&](TaskId from) { return placed[from.index()]; })) {
          placed[tasks[head].index()] = true;
          wiring_.sequence[rank].push_back(tasks[head++]);
          --left;
        }
      }
      HP_CHECK(left < before, "a verified plan has no cycle within a rank");
    }
  }

  const Plan& plan_;
  const Groups& groups_;
  Wiring wiring_;
  std::vector<TaskId> entries_;  // by rank, like the next two
  std::vector<TaskId> exits_;
  std::vector<bool> is_left_alone_;  // no other rank reads or writes its homes
  std::set<std::pair<RankId, RankId>> credits_;
};

}  // namespace

std::uint32_t granules_of(const Task& task) {
  const bool is_sent = task.kind == TaskKind::Copy && task.via == Via::Tma;
  return is_sent ? device::copy_arrivals(task.bytes) : 0;
}

bool waits_for_entries(const Plan& plan, const Wiring& wiring, TaskId task) {
  const std::vector<Word>& page = wiring.pages[rank_of(plan, task).index()];
  return std::ranges::all_of(wiring.tasks[task.index()].waits, [&](std::int32_t word) {
    return std::ranges::all_of(page[static_cast<std::size_t>(word)].producers, [&](TaskId from) {
      return plan.tasks[from.index()].kind == TaskKind::Entry;
    });
  });
}

Wiring wire(const Plan& plan, const Groups& groups) { return Wirer(plan, groups).wire(); }

}  // namespace harpe::cuda
