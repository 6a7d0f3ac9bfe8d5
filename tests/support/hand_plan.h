#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace harpe::test {

// A plan written by hand, task by task, which the verifier's tests then corrupt. A box is a text
// with one word per digit of more than one value, in the buffer's order: `3`, `1..3`, or `*`.
class HandPlan {
 public:
  // `text` is a program, a mesh and a normal form, in this order.
  explicit HandPlan(std::string_view text);

  // `holds` has one character per digit with more than one value: `*` all values, `.` one at a
  // time.
  AllocId slot(std::int64_t rank, const std::string& name, const std::string& buffer, Level level,
               DType dtype, std::string_view holds);
  // Makes one slot of this name on every rank; returns them by rank.
  std::vector<AllocId> slots(const std::string& name, const std::string& buffer, Level level,
                             DType dtype, std::string_view holds);
  QueueId queue(std::int64_t rank, QueueKind kind);

  TaskId entry(std::int64_t rank);
  TaskId exit(std::int64_t rank);
  // A task; its statement is the program's first if its kind needs one.
  TaskId task(std::int64_t rank, QueueKind queue, TaskKind kind, std::vector<Ref> reads,
              std::vector<Ref> writes);
  TaskId compute(std::int64_t rank, std::string_view iter, std::vector<Ref> reads,
                 std::vector<Ref> writes);
  TaskId copy(std::int64_t rank, const Ref& read, AllocId to);
  void sync(TaskId from, TaskId to);  // an event, or the waiting rank's next flag

  [[nodiscard]] Ref ref(AllocId alloc, WriteMode mode, std::string_view box) const;
  [[nodiscard]] Ref read(AllocId alloc, std::string_view box) const {
    return ref(alloc, WriteMode::Read, box);
  }
  [[nodiscard]] Box box(const std::vector<std::string>& axes, std::string_view text) const;

  Task& at(TaskId id) { return plan.tasks[id.index()]; }
  Sync& signal(TaskId from, TaskId to);
  void drop_sync(TaskId from, TaskId to);

  Plan plan;

 private:
  [[nodiscard]] std::vector<std::int32_t> extents(const std::vector<std::string>& axes) const;
  [[nodiscard]] std::vector<std::string> axes_of(AllocId alloc) const;

  std::map<std::pair<std::int64_t, QueueKind>, QueueId> queues_;
  std::map<std::string, std::int64_t> offsets_;
  std::map<RankId, std::int32_t> flags_;
  std::int64_t end_ = 0;
};

}  // namespace harpe::test
