#include "tests/support/hand_plan.h"

#include <algorithm>
#include <sstream>

#include "ir/text.h"

namespace harpe::test {
namespace {

template <class T>
T must(Checked<T> result) {
  HP_CHECK(result.ok(), render(result.error()));
  return std::move(result).value();
}

constexpr std::int64_t kSlotBytes = 1 << 20;  // larger than any block of the tests

}  // namespace

HandPlan::HandPlan(std::string_view text) {
  Cursor cursor = must(Cursor::open(text));
  plan.program = must(parse_program(cursor));
  plan.mesh = must(parse_mesh(cursor));
  plan.form = must(parse_form(cursor));
}

std::vector<std::int32_t> HandPlan::extents(const std::vector<std::string>& axes) const {
  std::vector<std::int32_t> extents;
  for (const std::string& axis : axes) {
    const Split* const split = find_split(plan.form, axis);
    if (split == nullptr) {
      extents.push_back(1);
      continue;
    }
    for (const Digit& digit : split->digits) {
      extents.push_back(static_cast<std::int32_t>(digit.extent.value_or(1)));
    }
  }
  return extents;
}

std::vector<std::string> HandPlan::axes_of(AllocId alloc) const {
  return axis_names(*find_buffer(plan.program, plan.allocs[alloc.index()].buffer));
}

Box HandPlan::box(const std::vector<std::string>& axes, std::string_view text) const {
  std::istringstream words{std::string(text)};
  Box box;
  for (const std::int32_t extent : extents(axes)) {
    std::string word = "0";
    if (extent > 1) words >> word;
    const std::size_t dots = word.find("..");
    const std::int32_t lo = word == "*" ? 0 : std::stoi(word);
    std::int32_t hi = lo + 1;
    if (word == "*") hi = extent;
    if (dots != std::string::npos) hi = std::stoi(word.substr(dots + 2));
    box.push_back({.lo = lo, .hi = hi});
  }
  return box;
}

AllocId HandPlan::slot(std::int64_t rank, const std::string& name, const std::string& buffer,
                       Level level, DType dtype, std::string_view holds) {
  const auto [at, fresh] = offsets_.try_emplace(name, end_);
  if (fresh) end_ += kSlotBytes;
  std::vector<bool> held;
  std::size_t next = 0;
  for (const std::int32_t extent : extents(axis_names(*find_buffer(plan.program, buffer)))) {
    held.push_back(extent == 1 || holds.at(next++) == '*');
  }
  plan.allocs.push_back({.rank = RankId(rank),
                         .name = name,
                         .buffer = buffer,
                         .level = level,
                         .dtype = dtype,
                         .holds = held,
                         .offset = at->second,
                         .bytes = kSlotBytes});
  return AllocId(static_cast<std::int64_t>(plan.allocs.size()) - 1);
}

std::vector<AllocId> HandPlan::slots(const std::string& name, const std::string& buffer,
                                     Level level, DType dtype, std::string_view holds) {
  std::vector<AllocId> ids;
  for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    ids.push_back(slot(rank, name, buffer, level, dtype, holds));
  }
  return ids;
}

QueueId HandPlan::queue(std::int64_t rank, QueueKind kind) {
  const auto [at, fresh] =
      queues_.try_emplace(std::pair(rank, kind), static_cast<std::int64_t>(plan.queues.size()));
  if (fresh) plan.queues.push_back({.rank = RankId(rank), .kind = kind});
  return at->second;
}

TaskId HandPlan::task(std::int64_t rank, QueueKind queue_kind, TaskKind kind,
                      std::vector<Ref> reads, std::vector<Ref> writes) {
  Task task;
  task.queue = queue(rank, queue_kind);
  task.kind = kind;
  const bool of_statement = kind == TaskKind::Init || kind == TaskKind::Compute ||
                            kind == TaskKind::Fold || kind == TaskKind::Finalise;
  if (of_statement) task.nest = plan.program.nests.front().name;
  if (kind == TaskKind::Copy) task.via = Via::Ce;
  if (kind == TaskKind::Collective) task.via = Via::Nccl;
  task.reads = std::move(reads);
  task.writes = std::move(writes);
  plan.tasks.push_back(std::move(task));
  return TaskId(static_cast<std::int64_t>(plan.tasks.size()) - 1);
}

TaskId HandPlan::entry(std::int64_t rank) {
  return task(rank, QueueKind::Host, TaskKind::Entry, {}, {});
}

TaskId HandPlan::exit(std::int64_t rank) {
  return task(rank, QueueKind::Host, TaskKind::Exit, {}, {});
}

TaskId HandPlan::compute(std::int64_t rank, std::string_view iter, std::vector<Ref> reads,
                         std::vector<Ref> writes) {
  const TaskId id =
      task(rank, QueueKind::Sm, TaskKind::Compute, std::move(reads), std::move(writes));
  at(id).iter = {box(plan.program.nests.front().over, iter)};
  return id;
}

TaskId HandPlan::copy(std::int64_t rank, const Ref& read, AllocId to) {
  const Ref write{.alloc = to, .mode = WriteMode::Set, .boxes = read.boxes, .when = {}};
  return task(rank, QueueKind::Ce, TaskKind::Copy, {read}, {write});
}

Ref HandPlan::ref(AllocId alloc, WriteMode mode, std::string_view text) const {
  return {.alloc = alloc, .mode = mode, .boxes = {box(axes_of(alloc), text)}, .when = {}};
}

void HandPlan::sync(TaskId from, TaskId to) {
  const RankId signaller = plan.queues[at(from).queue.index()].rank;
  const RankId waiter = plan.queues[at(to).queue.index()].rank;
  const bool local = signaller == waiter;
  plan.syncs.push_back({.from = from,
                        .to = to,
                        .kind = local ? SyncKind::Event : SyncKind::Flag,
                        .flag = local ? -1 : flags_[waiter]++});
}

Sync& HandPlan::signal(TaskId from, TaskId to) {
  const auto found = std::ranges::find_if(
      plan.syncs, [&](const Sync& sync) { return sync.from == from && sync.to == to; });
  HP_CHECK(found != plan.syncs.end(), "the test names a sync that is not there");
  return *found;
}

void HandPlan::drop_sync(TaskId from, TaskId to) {
  const std::size_t before = plan.syncs.size();
  std::erase_if(plan.syncs, [&](const Sync& sync) { return sync.from == from && sync.to == to; });
  HP_CHECK(plan.syncs.size() + 1 == before, "the test names a sync that is not there");
}

}  // namespace harpe::test
