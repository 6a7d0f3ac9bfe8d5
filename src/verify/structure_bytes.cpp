#include <algorithm>
#include <vector>

#include "verify/structure.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

// The number of elements of every block of a buffer.
std::vector<std::int64_t> count_elements(const Model& model, const BufferModel& buffer) {
  std::vector<std::int64_t> elements;
  elements.reserve(static_cast<std::size_t>(buffer.radix.blocks));
  for (std::int64_t block = 0; block < buffer.radix.blocks; ++block) {
    const std::vector<std::int32_t> point = point_of(buffer.radix, block);
    std::int64_t count = buffer.opaque;
    for (const AxisView& view : buffer.axes) {
      const AxisModel& axis = model.axes[static_cast<std::size_t>(view.axis)];
      const auto at = static_cast<std::size_t>(product(view.strides, point));
      count *= axis.end[at] - axis.begin[at];
    }
    elements.push_back(count);
  }
  return elements;
}

class ByteCheck {
 public:
  ByteCheck(const Plan& plan, const Model& model, const Resolved& resolved)
      : plan_(plan), model_(model), resolved_(resolved), elements_(model.buffers.size()) {}

  // The bytes that a task reads from other ranks, in the type in which they arrive.
  std::int64_t need(std::size_t id) {
    const Task& task = plan_.tasks[id];
    if (task.kind != TaskKind::Copy && task.kind != TaskKind::Collective) return 0;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const ResolvedRef& read = resolved_.reads(id)[i];
      const Ref& write = task.writes[std::min(i, task.writes.size() - 1)];
      const Alloc& to = plan_.allocs[write.alloc.index()];
      if (plan_.allocs[task.reads[i].alloc.index()].rank == to.rank) continue;
      const std::vector<std::int64_t>& elements = elements_of(read.buffer);
      for (const Cell& cell : resolved_.cells(read)) {
        bytes += elements[static_cast<std::size_t>(cell.block)] *
                 size_in_bytes(task.wire.value_or(to.dtype));
      }
    }
    return bytes;
  }

 private:
  const std::vector<std::int64_t>& elements_of(std::int32_t buffer) {
    const auto at = static_cast<std::size_t>(buffer);
    if (elements_[at].empty()) elements_[at] = count_elements(model_, model_.buffers[at]);
    return elements_[at];
  }

  const Plan& plan_;
  const Model& model_;
  const Resolved& resolved_;
  std::vector<std::vector<std::int64_t>> elements_;  // per buffer, per block; empty until needed
};

}  // namespace

Checked<Ok> check_bytes(const Plan& plan, const Model& model, const Resolved& resolved) {
  ByteCheck check(plan, model, resolved);
  for (std::size_t id = 0; id < plan.tasks.size(); ++id) {
    const std::int64_t need = check.need(id);
    if (plan.tasks[id].bytes == need) continue;
    return make_diag(DiagCode::V236,
                     {{"task", Words(plan, model).task(static_cast<std::int64_t>(id))},
                      {"bytes", plan.tasks[id].bytes},
                      {"need", need}});
  }
  return Ok{};
}

}  // namespace harpe::verifier
