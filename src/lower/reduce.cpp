#include "lower/reduce.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "lower/clock.h"
#include "lower/order.h"

namespace harpe {
namespace {

void fold_exit(Draft& draft) {
  const int barrier = barrier_of(draft, TaskKind::Exit);
  std::vector<int> all;
  for (DraftTask& task : draft.tasks) {
    if (task.kind != TaskKind::Exit || task.is_barrier) continue;
    all.insert(all.end(), task.after.begin(), task.after.end());
    task.after = {barrier};
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  draft.tasks[static_cast<std::size_t>(barrier)].after = std::move(all);
}

// Vector clocks over strands (verify/order.h): clock[s] = position of the last task of strand s
// known to be over. A queue is one strand. A queue of puts has one strand per destination, or one
// per put if each put is signalled separately.
class Reducer {
 public:
  Reducer(Draft& draft, bool may_fold, std::int64_t most_bytes)
      : draft_(draft), may_fold_(may_fold), most_bytes_(most_bytes) {
    number_strands();
    has_entry_counter_ = std::ranges::any_of(draft.tasks, [](const DraftTask& task) {
      return task.kind == TaskKind::Entry && task.is_barrier && !task.after.empty();
    });
    clocks_.resize(draft.tasks.size());
    none_ = Clock(length_.size(), account_);
    keep_last_of_strands();
    count_uses();
  }

  Checked<Ok> run(const TimeLimit& limit) {
    std::size_t begin = 0;
    while (begin < draft_.tasks.size() && draft_.tasks[begin].kind != TaskKind::Exit) {
      HP_REQUIRE_OK(check_memory(begin));
      HP_REQUIRE_OK(limit.check(kLowering));
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
  // Destination of a put, or none; rank, queue, and the task if it is its own strand.
  using Strand = std::tuple<RankId, RankId, QueueKind, std::int64_t>;

  // Queues come first. Strands of puts to one rank are adjacent, because that rank is the first to
  // know that they are over; so clocks share more pages.
  void number_strands() {
    std::map<std::pair<RankId, QueueKind>, int> queues;
    std::vector<Strand> strands;
    for (std::size_t i = 0; i < draft_.tasks.size(); ++i) {
      const DraftTask& task = draft_.tasks[i];
      const auto queue_count = static_cast<int>(queues.size());
      queue_.push_back(
          task.is_barrier ? -1
                          : queues.try_emplace({task.rank, task.queue}, queue_count).first->second);
      strands.push_back(strand_of(i));
    }
    last_.assign(queues.size(), -1);
    puts_.resize(queues.size());
    std::vector<Strand> sorted = strands;
    std::ranges::sort(sorted);
    sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
    length_.assign(sorted.size(), 0);
    for (const Strand& own : strands) {
      strand_.push_back(static_cast<int>(std::ranges::lower_bound(sorted, own) - sorted.begin()));
      position_.push_back(length_[static_cast<std::size_t>(strand_.back())]++);
    }
  }

  [[nodiscard]] Strand strand_of(std::size_t i) const {
    const DraftTask& task = draft_.tasks[i];
    const bool singly = task.fence == Fence::PerPut || task.fence == Fence::Immediate;
    const bool alone = task.is_barrier || (is_put(task) && singly);
    const RankId to = is_put(task) ? destination_of(draft_, task) : RankId(-1);
    return {to, task.rank, task.queue, alone ? static_cast<std::int64_t>(i) : -1};
  }

  // How much clocks share is known only during the reduction. `done`: number of tasks reduced.
  [[nodiscard]] Checked<Ok> check_memory(std::size_t done) const {
    constexpr std::int64_t kMebi = std::int64_t{1} << 20;
    if (account_ <= most_bytes_) return Ok{};
    return make_diag(DiagCode::I504, {{"tasks", draft_.tasks.size()},
                                      {"ranks", draft_.mesh.ranks()},
                                      {"limit", std::to_string(most_bytes_ / kMebi) + " MiB"},
                                      {"done", done}});
  }

  // Reduces each exit by itself. If many pairs of ranks would remain, or if a rank could start its
  // next execution before all ranks have entered this one, all exits wait at one counter instead.
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

  // If entries wait at a counter: whether all entries are over before the Exit.
  [[nodiscard]] bool knows_entries(std::size_t exit) const {
    if (draft_.tasks[exit].is_barrier || !has_entry_counter_) return true;
    for (std::size_t i = 0; i < draft_.tasks.size(); ++i) {
      if (draft_.tasks[i].kind != TaskKind::Entry) break;
      const auto strand = static_cast<std::size_t>(strand_[i]);
      if (!draft_.tasks[i].is_barrier && clocks_[exit].at(strand) < position_[i]) return false;
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

  // A wait for a task implies waits for the earlier tasks of its strand, so only the last is kept.
  void keep_last_of_strands() {
    std::vector<int> waiting(length_.size(), -1);  // per strand: the last task seen
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

  // Counts the later tasks that read a task's clock: its successors, and the next task of its
  // queue.
  void count_uses() {
    uses_.assign(draft_.tasks.size(), 0);
    std::vector<int> last(last_.size(), -1);
    for (std::size_t i = 0; i < draft_.tasks.size(); ++i) {
      for (const int before : draft_.tasks[i].after) ++uses_[static_cast<std::size_t>(before)];
      if (queue_[i] < 0) continue;
      int& previous = last[static_cast<std::size_t>(queue_[i])];
      if (previous >= 0) ++uses_[static_cast<std::size_t>(previous)];
      previous = static_cast<int>(i);
    }
  }

  void release(int task) {
    if (keeps_clocks_ || task < 0) return;
    const auto at = static_cast<std::size_t>(task);
    if (--uses_[at] == 0) clocks_[at] = {};
  }

  // The clock that queue order alone gives. For a put it says that it was posted, not that it
  // arrived.
  void begin_behind(int previous) {
    known_ = none_;
    if (previous < 0) return;
    known_ = clocks_[static_cast<std::size_t>(previous)];
  }

  // Events and barriers behind a put cover its queue's puts; a signal covers what its fence says.
  void join_signalled(Clock& clock, std::size_t from, const DraftTask& to) const {
    clock.join(clocks_[from]);
    arrive(clock, from);
    const bool drains = to.is_barrier || to.rank == draft_.tasks[from].rank;
    if (!drains || !is_put(draft_.tasks[from])) return;
    for (const std::size_t put : puts_[static_cast<std::size_t>(queue_[from])]) {
      if (put > from) break;
      arrive(clock, put);
    }
  }

  void arrive(Clock& clock, std::size_t task) const {
    const auto strand = static_cast<std::size_t>(strand_[task]);
    clock.set(strand, std::max(clock.at(strand), position_[task]));
  }

  // The members of a collective meet: a wait for one member covers what all members waited for, but
  // not the other members themselves.
  void reduce(std::size_t begin, std::size_t end) {
    met_ = none_;
    for (std::size_t i = begin; i < end; ++i) {
      const int previous = queue_[i] < 0 ? -1 : last_[static_cast<std::size_t>(queue_[i])];
      begin_behind(previous);
      std::vector<int> after = std::move(draft_.tasks[i].after);
      draft_.tasks[i].after.clear();
      // Later tasks first: an edge can only be implied by a later one.
      std::ranges::sort(after, std::ranges::greater{});
      for (const int before : after) {
        const auto b = static_cast<std::size_t>(before);
        if (known_.at(static_cast<std::size_t>(strand_[b])) >= position_[b]) continue;
        draft_.tasks[i].after.push_back(before);
        join_signalled(known_, b, draft_.tasks[i]);
      }
      std::ranges::sort(draft_.tasks[i].after);
      met_.join(known_);
      for (const int before : after) release(before);
      release(previous);
    }
    for (std::size_t i = begin; i < end; ++i) finish(i);
  }

  void finish(std::size_t i) {
    const bool puts = is_put(draft_.tasks[i]);
    clocks_[i] = met_;
    if (!puts) clocks_[i].set(static_cast<std::size_t>(strand_[i]), position_[i]);
    if (queue_[i] < 0) return;
    last_[static_cast<std::size_t>(queue_[i])] = static_cast<int>(i);
    if (puts) puts_[static_cast<std::size_t>(queue_[i])].push_back(i);
  }

  Draft& draft_;
  bool may_fold_;
  std::int64_t most_bytes_;
  bool has_entry_counter_ = false;
  std::vector<int> queue_;  // of barriers: -1
  std::vector<int> strand_;
  std::vector<std::int32_t> position_;  // in its strand
  std::vector<std::int32_t> length_;
  std::vector<int> last_;                       // per queue
  std::vector<std::vector<std::size_t>> puts_;  // per queue, so far
  Clock::Account account_ = 0;
  Clock none_;
  // Per task, while still needed: the clock for the next task of its queue. It leaves out that a
  // put has arrived, because clocks with and without that would share no pages.
  std::vector<Clock> clocks_;
  std::vector<std::int32_t> uses_;  // per task: readers of its clock that are left
  bool keeps_clocks_ = false;       // exits may be reduced twice
  Clock met_, known_;               // of the current tasks
};

}  // namespace

Checked<Ok> reduce_order(Draft& draft, bool may_fold, std::int64_t most_bytes,
                         const TimeLimit& limit) {
  return Reducer(draft, may_fold, most_bytes).run(limit);
}

}  // namespace harpe
