#include "verify/races.h"

#include <algorithm>

#include "verify/clocks.h"
#include "verify/fences.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

using Clock = const Row&;

class RaceCheck {
 public:
  RaceCheck(const Plan& plan, const Words& words, const Resolved& resolved, const Order& order,
            const Scope& scope, const OrdersCell& orders_cell)
      : plan_(plan),
        resolved_(resolved),
        order_(order),
        scope_(scope),
        words_(words),
        orders_cell_(orders_cell) {
    const auto ranks = static_cast<std::size_t>(words.model().ranks);
    cells_.resize(static_cast<std::size_t>(resolved.cell_count));
    slots_.resize(plan.allocs.size());
    std::size_t reads = 0;
    for (std::size_t id = 0; id < scope.tasks; ++id) {
      for (const ResolvedRef& ref : resolved.reads(id)) reads += ref.count;
    }
    readers_.reserve(reads * (plan.tasks.size() / scope.tasks));
    touched_.resize(ranks * (plan.tasks.size() / scope.tasks));
    entry_.resize(touched_.size());
    member_at_.resize(ranks);
    for (std::size_t id = 0; id < plan.tasks.size(); ++id) {
      const auto task = static_cast<std::int32_t>(id);
      if (plan.tasks[id].kind == TaskKind::Entry) {
        entry_[turn_of(words_.rank_of(task), task)] = task;
      }
    }
  }

  Checked<Ok> run(const TimeLimit& limit, const AtStart& at_start) {
    Checked<Ok> found = Ok{};
    Clocks clocks(order_);
    for (const std::int32_t unit : order_.sequence) {
      HP_REQUIRE_OK(limit.check(kProof));
      const bool meets = order_.members(unit).size() > 1;
      if (meets) collect_sends(unit);
      for (const std::int32_t task : order_.members(unit)) {
        const Row& over = clocks.start(task);
        if (at_start) HP_REQUIRE_OK(at_start(task, over));
        if (found.ok()) found = visit(task, over, meets);
        if (!found.ok() && !at_start) return found;
      }
      if (order_.members(unit).empty()) (void)clocks.start(unit);  // a barrier
      clocks.finish(unit);
    }
    HP_REQUIRE_OK(found);
    return check_exits();
  }

 private:
  struct CellHistory {
    std::int32_t writer = -1;
    std::int32_t readers = -1;  // since the last write: a list in readers_
  };
  struct Reader {
    std::int32_t task;
    std::int32_t next;
  };
  struct SlotHistory {
    std::int32_t content = -1;
    std::int32_t block = -1;        // some block of the content, for names
    std::vector<std::int32_t> now;  // tasks that accessed this content
    // per strand the last task that accessed the previous content
    std::vector<std::int32_t> before;
    std::int32_t block_before = -1;
  };
  struct Send {
    std::int32_t member;
    const ResolvedRef* ref;
  };

  // An index for a rank in a task's execution.
  [[nodiscard]] std::size_t turn_of(RankId rank, std::int32_t task) const {
    const std::size_t execution = static_cast<std::size_t>(task) / scope_.tasks;
    return execution * member_at_.size() + rank.index();
  }

  Checked<Ok> visit(std::int32_t task, Clock clock, bool grouped) {
    const std::size_t id = scope_.task(task);
    const TaskKind kind = plan_.tasks[id].kind;
    if (kind == TaskKind::Exit) exit_clocks_.push_back(clock);
    if (kind == TaskKind::Exit) exits_seen_.push_back(task);
    if (kind == TaskKind::Entry || kind == TaskKind::Exit) return Ok{};
    const bool works = !resolved_.reads(id).empty() || !resolved_.writes(id).empty();
    if (scope_.is_of_launches) HP_REQUIRE_OK(check_begun(task, clock));
    if (scope_.is_of_launches && works) note_touch(task, words_.rank_of(task));
    if (grouped) {
      for (const Send& send : std::ranges::equal_range(sends_, task, {}, &Send::member)) {
        HP_REQUIRE_OK(touch(task, *send.ref, clock));
      }
    } else {
      for (const ResolvedRef& ref : resolved_.reads(id)) HP_REQUIRE_OK(touch(task, ref, clock));
    }
    for (const ResolvedRef& ref : resolved_.writes(id)) HP_REQUIRE_OK(touch(task, ref, clock));
    return Ok{};
  }

  // The sending ranks: which member owns the parts that the members of a collective read.
  void collect_sends(std::int32_t unit) {
    sends_.clear();
    for (const std::int32_t member : order_.members(unit)) {
      member_at_[words_.rank_of(member).index()] = member;
    }
    for (const std::int32_t reader : order_.members(unit)) {
      for (const ResolvedRef& ref : resolved_.reads(scope_.task(reader))) {
        const RankId rank = plan_.allocs[static_cast<std::size_t>(ref.alloc)].rank;
        sends_.push_back({.member = member_at_[rank.index()], .ref = &ref});
      }
    }
    std::ranges::stable_sort(sends_, {}, &Send::member);
  }

  [[nodiscard]] bool is_over(std::int32_t task, Clock clock) const {
    return clock.at(order_.strand_of(task)) >= order_.strand_position_of(task);
  }

  // A step of a launch must follow its rank's Entry, which begins the epoch that signals count in.
  Checked<Ok> check_begun(std::int32_t task, Clock clock) const {
    const std::int32_t entry = entry_[turn_of(words_.rank_of(task), task)];
    if (is_over(entry, clock)) return Ok{};
    return make_diag(DiagCode::V709, {{"task", words_.task(task)}, {"entry", words_.task(entry)}});
  }

  // Records that the rank's Exit must follow the task.
  void note_touch(std::int32_t task, RankId rank) {
    std::vector<std::int32_t>& touched = touched_[turn_of(rank, task)];
    if (touched.empty() || touched.back() != task) touched.push_back(task);
  }

  // Between a rank's Exit and its next Entry, its homes belong to the caller. If plans take turns,
  // its slots then belong to other plans, except those that are kept apart.
  Checked<Ok> check_span(std::int32_t task, const ResolvedRef& ref, Clock clock) {
    const Alloc& alloc = plan_.allocs[static_cast<std::size_t>(ref.alloc)];
    const bool has_credit =
        scope_.is_of_launches && scope_.apart[static_cast<std::size_t>(ref.alloc)];
    if (has_credit && alloc.level != Level::Home) return Ok{};
    const std::int32_t entry = entry_[turn_of(alloc.rank, task)];
    if (!is_over(entry, clock)) {
      return make_diag(DiagCode::V405, {{"task", words_.task(task)},
                                        {"alloc", words_.alloc(ref.alloc)},
                                        {"entry", words_.task(entry)}});
    }
    note_touch(task, alloc.rank);
    return Ok{};
  }

  Checked<Ok> touch(std::int32_t task, const ResolvedRef& ref, Clock clock) {
    if (ref.count == 0 || static_cast<std::size_t>(ref.alloc) >= scope_.private_from) return Ok{};
    HP_REQUIRE_OK(check_span(task, ref, clock));
    if (resolved_.footprint(ref.alloc).contents > 1)
      HP_REQUIRE_OK(change_content(task, ref, clock));
    for (const Cell& cell : resolved_.cells(ref)) {
      CellHistory& history = cells_[resolved_.cell_index(ref, cell)];
      HP_REQUIRE_OK(ref.mode == WriteMode::Read ? read(task, ref, cell, clock, history)
                                                : write(task, ref, cell, clock, history));
    }
    return Ok{};
  }

  // All accesses to a slot's previous content must be over before it gets another content.
  Checked<Ok> change_content(std::int32_t task, const ResolvedRef& ref, Clock clock) {
    SlotHistory& slot = slots_[static_cast<std::size_t>(ref.alloc)];
    if (slot.content != ref.content) {
      slot.before = last_per_strand(slot.now);
      slot.block_before = slot.block;
      slot.now.clear();
      slot.content = ref.content;
      slot.block = resolved_.cells(ref).front().block;
      for (std::int64_t cell = 0; cell < resolved_.footprint(ref.alloc).cells; ++cell) {
        cells_[static_cast<std::size_t>(
            resolved_.allocs[static_cast<std::size_t>(ref.alloc)].first_cell + cell)] = {};
      }
    }
    for (const std::int32_t earlier : slot.before) {
      if (is_over(earlier, clock)) continue;
      if (auto finding = overtaken(earlier, task, ref.mode == WriteMode::Read ? "reads" : "writes",
                                   words_.block(ref.buffer, slot.block), ref.alloc)) {
        return *finding;
      }
      return make_diag(DiagCode::V404, {{"task", words_.task(task)},
                                        {"verb", ref.mode == WriteMode::Read ? "reads" : "writes"},
                                        {"block", words_.block(ref.buffer, slot.block)},
                                        {"alloc", words_.alloc(ref.alloc)},
                                        {"other", words_.task(earlier)},
                                        {"old", words_.block(ref.buffer, slot.block_before)}});
    }
    if (slot.now.empty() || slot.now.back() != task) slot.now.push_back(task);
    return Ok{};
  }

  // The last task of each strand; once it is over, all earlier ones are.
  [[nodiscard]] std::vector<std::int32_t> last_per_strand(std::vector<std::int32_t> tasks) const {
    std::ranges::sort(tasks, [&](std::int32_t a, std::int32_t b) {
      return std::pair(order_.strand_of(a), -order_.strand_position_of(a)) <
             std::pair(order_.strand_of(b), -order_.strand_position_of(b));
    });
    const auto tail =
        std::ranges::unique(tasks, {}, [&](std::int32_t t) { return order_.strand_of(t); });
    tasks.erase(tail.begin(), tail.end());
    return tasks;
  }

  Checked<Ok> read(std::int32_t task, const ResolvedRef& ref, const Cell& cell, Clock clock,
                   CellHistory& history) {
    if (history.writer >= 0 && history.writer != task && !is_over(history.writer, clock) &&
        !(orders_cell_ && orders_cell_(resolved_.cell_index(ref, cell), history.writer, task))) {
      return conflict(DiagCode::V401, ref, cell, history.writer, task);
    }
    readers_.push_back({.task = task, .next = history.readers});
    history.readers = static_cast<std::int32_t>(readers_.size()) - 1;
    return Ok{};
  }

  Checked<Ok> write(std::int32_t task, const ResolvedRef& ref, const Cell& cell, Clock clock,
                    CellHistory& history) {
    if (history.writer >= 0 && history.writer != task && !is_over(history.writer, clock)) {
      return conflict(DiagCode::V403, ref, cell, history.writer, task);
    }
    for (std::int32_t at = history.readers; at >= 0;
         at = readers_[static_cast<std::size_t>(at)].next) {
      const std::int32_t reader = readers_[static_cast<std::size_t>(at)].task;
      if (reader != task && !is_over(reader, clock)) {
        return conflict(DiagCode::V402, ref, cell, task, reader);
      }
    }
    history.writer = task;
    history.readers = -1;
    return Ok{};
  }

  // V540 if `task` waits for a signal behind the put that does not cover it.
  [[nodiscard]] std::optional<Diag> overtaken(std::int32_t put, std::int32_t task,
                                              const std::string& verb, const std::string& block,
                                              std::int32_t alloc) const {
    if (!order_.is_put(put)) return std::nullopt;
    const std::optional<std::string> reason = why_uncovered(plan_, words_, order_, put, task);
    if (!reason) return std::nullopt;
    return make_diag(DiagCode::V540, {{"task", words_.task(task)},
                                      {"verb", verb},
                                      {"block", block},
                                      {"alloc", words_.alloc(alloc)},
                                      {"put", words_.task(put)},
                                      {"reason", *reason}});
  }

  [[nodiscard]] Diag conflict(DiagCode code, const ResolvedRef& ref, const Cell& cell,
                              std::int32_t writer, std::int32_t other) const {
    const std::string block = words_.block(ref.buffer, cell.block);
    // For a write after a read, the reader is the earlier one.
    const auto [earlier, later] =
        code == DiagCode::V402 ? std::pair(other, writer) : std::pair(writer, other);
    if (auto finding = overtaken(earlier, later, code == DiagCode::V401 ? "reads" : "writes", block,
                                 ref.alloc)) {
      return *finding;
    }
    return make_diag(code, {{"block", block},
                            {"alloc", words_.alloc(ref.alloc)},
                            {"writer", words_.task(writer)},
                            {"other", words_.task(other)}});
  }

  Checked<Ok> check_exits() {
    for (std::size_t i = 0; i < exits_seen_.size(); ++i) {
      const RankId rank = words_.rank_of(exits_seen_[i]);
      const std::size_t turn = turn_of(rank, exits_seen_[i]);
      for (const std::int32_t task : last_per_strand(std::move(touched_[turn]))) {
        if (!is_over(task, exit_clocks_[i])) return unfinished(exits_seen_[i], task, rank.index());
      }
      if (!is_over(entry_[turn], exit_clocks_[i])) {
        return make_diag(DiagCode::V406,
                         {{"exit", words_.task(exits_seen_[i])},
                          {"task", words_.task(entry_[turn])},
                          {"alloc", "the slots of rank " + std::to_string(rank.value)}});
      }
    }
    return Ok{};
  }

  // `task` accesses memory of `rank`, and the rank's Exit does not wait for it.
  [[nodiscard]] Diag unfinished(std::int32_t exit, std::int32_t task, std::size_t rank) const {
    std::string slot;
    const auto look = [&](std::span<const ResolvedRef> refs) {
      for (const ResolvedRef& ref : refs) {
        const bool here = plan_.allocs[static_cast<std::size_t>(ref.alloc)].rank.index() == rank;
        if (slot.empty() && here && ref.count > 0) slot = words_.alloc(ref.alloc);
      }
    };
    look(resolved_.writes(scope_.task(task)));
    look(resolved_.reads(scope_.task(task)));
    if (slot.empty()) slot = "a part of rank " + std::to_string(rank);
    return make_diag(DiagCode::V406,
                     {{"exit", words_.task(exit)}, {"task", words_.task(task)}, {"alloc", slot}});
  }

  const Plan& plan_;
  const Resolved& resolved_;
  const Order& order_;
  const Scope& scope_;
  const Words& words_;
  const OrdersCell& orders_cell_;
  std::vector<CellHistory> cells_;
  std::vector<SlotHistory> slots_;
  std::vector<Reader> readers_;
  std::vector<std::vector<std::int32_t>> touched_;  // by turn_of: tasks that accessed its slots
  std::vector<std::int32_t> entry_;                 // by turn_of
  std::vector<std::int32_t> member_at_;             // per rank: of the current group
  std::vector<std::int32_t> exits_seen_;
  std::vector<Row> exit_clocks_;
  std::vector<Send> sends_;
};

}  // namespace

Checked<Ok> check_races(const Plan& plan, const Words& words, const Resolved& resolved,
                        const Order& order, const Scope& scope, const TimeLimit& limit,
                        const AtStart& at_start, const OrdersCell& orders_cell) {
  return RaceCheck(plan, words, resolved, order, scope, orders_cell).run(limit, at_start);
}

}  // namespace harpe::verifier
