#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "ir/blocks.h"
#include "ir/text.h"
#include "plan/plan.h"
#include "plan/slots.h"

namespace harpe::test {

inline Range one(std::int64_t value) {
  return {static_cast<std::int32_t>(value), static_cast<std::int32_t>(value + 1)};
}
inline Range upto(std::int64_t extent) { return {0, static_cast<std::int32_t>(extent)}; }

// Builds plans by hand, in the form that the lowering would give them.
class PlanBuilder {
 public:
  PlanBuilder(std::string_view program, std::string_view mesh, std::string_view form) {
    plan_.program = read_text(program, parse_program);
    plan_.mesh = read_text(mesh, parse_mesh);
    plan_.form = read_text(form, parse_form);
    Checked<Blocks> blocks = Blocks::make(plan_.program, plan_.mesh, plan_.form);
    EXPECT_TRUE(blocks.ok());
    blocks_.emplace(std::move(blocks).value());
    for (const Buffer* buffer : buffers_of(plan_.program)) {
      for (std::int64_t rank = 0; rank < plan_.mesh.ranks(); ++rank) home(rank, buffer->name);
    }
    for (std::int64_t rank = 0; rank < plan_.mesh.ranks(); ++rank) {
      task(queue(rank, QueueKind::Host), TaskKind::Entry);
    }
  }

  // Slots of one name have the same offset on all ranks.
  AllocId slot(std::int64_t rank, const std::string& name, const std::string& buffer, Level level,
               DType dtype, std::vector<bool> holds) {
    const std::int64_t elements = max_elements(*blocks_, blocks_->find_buffer(buffer), holds);
    const std::int64_t bytes = elements * size_in_bytes(dtype);
    const auto [entry, is_new] = offsets_.try_emplace(name, end_);
    if (is_new) end_ += (bytes + 63) / 64 * 64;
    plan_.allocs.push_back({.rank = RankId(rank),
                            .name = name,
                            .buffer = buffer,
                            .level = level,
                            .dtype = dtype,
                            .holds = std::move(holds),
                            .offset = entry->second,
                            .bytes = bytes});
    return AllocId(static_cast<std::int64_t>(plan_.allocs.size()) - 1);
  }

  [[nodiscard]] AllocId home_of(std::int64_t rank, const std::string& buffer) const {
    return homes_.at({rank, buffer});
  }

  // The rank's queue of a kind; the first call makes it.
  QueueId queue(std::int64_t rank, QueueKind kind) {
    const auto [entry, is_new] =
        queues_.try_emplace({rank, kind}, static_cast<std::int64_t>(plan_.queues.size()));
    if (is_new) plan_.queues.push_back({.rank = RankId(rank), .kind = kind});
    return entry->second;
  }

  TaskId task(QueueId queue, TaskKind kind, std::vector<Ref> reads = {},
              std::vector<Ref> writes = {}, std::vector<Box> iter = {}) {
    Task task;
    task.queue = queue;
    task.kind = kind;
    if (!plan_.program.nests.empty()) task.nest = plan_.program.nests.front().name;
    const bool moves = kind == TaskKind::Copy || kind == TaskKind::Collective;
    if (moves || kind == TaskKind::Entry || kind == TaskKind::Exit) task.nest.clear();
    task.reads = std::move(reads);
    task.writes = std::move(writes);
    task.iter = std::move(iter);
    plan_.tasks.push_back(std::move(task));
    return TaskId(static_cast<std::int64_t>(plan_.tasks.size()) - 1);
  }

  Task& at(TaskId task) { return plan_.tasks[task.index()]; }
  [[nodiscard]] static TaskId entry(std::int64_t rank) { return TaskId(rank); }

  void sync(TaskId from, TaskId to) {
    const QueueId a = plan_.tasks[from.index()].queue;
    const QueueId b = plan_.tasks[to.index()].queue;
    if (a == b) return;
    const RankId waiter = plan_.queues[b.index()].rank;
    const bool local = plan_.queues[a.index()].rank == waiter;
    plan_.syncs.push_back({.from = from,
                           .to = to,
                           .kind = local ? SyncKind::Event : SyncKind::Flag,
                           .flag = local ? -1 : flags_[waiter]++});
  }

  // Adds the Exits; `before[rank]` are the last tasks that touch the rank's allocations.
  Plan finish(const std::map<std::int64_t, std::vector<TaskId>>& before) {
    for (std::int64_t rank = 0; rank < plan_.mesh.ranks(); ++rank) {
      const TaskId exit = task(queue(rank, QueueKind::Host), TaskKind::Exit);
      const auto found = before.find(rank);
      if (found == before.end()) continue;
      for (const TaskId last : found->second) sync(last, exit);
    }
    return plan_;
  }

  Plan& plan() { return plan_; }
  [[nodiscard]] const Blocks& blocks() const { return *blocks_; }

 private:
  template <class Value>
  static Value read_text(std::string_view text, Checked<Value> (*parse)(Cursor&)) {
    Cursor cursor = Cursor::open(text).value();
    Checked<Value> value = parse(cursor);
    EXPECT_TRUE(value.ok()) << (value.ok() ? "" : render(value.error()));
    return std::move(value).value();
  }

  void home(std::int64_t rank, const std::string& name) {
    const int index = blocks_->find_buffer(name);
    const BufferTable& table = blocks_->buffers()[static_cast<std::size_t>(index)];
    std::vector<bool> holds;
    holds.reserve(table.home.size());
    for (const std::vector<int>& axes : table.home) holds.push_back(axes.empty());
    homes_[{rank, name}] = slot(rank, name + ".home", name, Level::Home, table.dtype, holds);
  }

  Plan plan_;
  std::optional<Blocks> blocks_;
  std::int64_t end_ = 0;
  std::map<std::string, std::int64_t> offsets_;
  std::map<std::pair<std::int64_t, std::string>, AllocId> homes_;
  std::map<std::pair<std::int64_t, QueueKind>, QueueId> queues_;
  std::map<RankId, std::int32_t> flags_;
};

inline Ref ref(AllocId alloc, WriteMode mode, std::vector<Box> boxes) {
  return {.alloc = alloc, .mode = mode, .boxes = std::move(boxes), .when = {}};
}
inline Ref read(AllocId alloc, std::vector<Box> boxes) {
  return ref(alloc, WriteMode::Read, std::move(boxes));
}

}  // namespace harpe::test
