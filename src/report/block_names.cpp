#include "report/block_names.h"

#include <algorithm>

#include "support/check.h"

namespace harpe {

std::string print_values(const std::set<std::int32_t>& values) {
  const std::int32_t first = *values.begin();
  const std::int32_t last = *values.rbegin();
  if (first == last) return std::to_string(first);
  if (last - first + 1 == std::ssize(values)) {
    return std::to_string(first) + ".." + std::to_string(last);
  }
  std::string out;
  for (const std::int32_t value : values) {
    out += (out.empty() ? "" : "|") + std::to_string(value);
  }
  return out;
}

std::string BlockNames::of(const std::vector<int>& digits, const std::vector<Box>& boxes) const {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const DigitTable& digit = blocks_.digits()[static_cast<std::size_t>(digits[i])];
    std::set<std::int32_t> values;
    for (const Box& box : boxes) {
      for (std::int32_t v = box[i].lo; v < box[i].hi; ++v) values.insert(v);
    }
    if (std::ssize(values) == digit.extent || values.empty()) continue;
    out += (out.empty() ? "" : " ") + digit.name + "=" + print_values(values);
  }
  return out;
}

std::string BlockNames::of_work(const Task& task) const {
  const Nest& nest = *find_nest(plan_.program, task.nest);
  std::string work = of(iteration_digits(plan_.program, blocks_, nest), task.iter);
  if (nest.stmts.size() > 1) {
    const Stmt& stmt = nest.stmts[static_cast<std::size_t>(task.stmt)];
    work = stmt.targets[0].buffer + (work.empty() ? "" : " " + work);
  }
  return work;
}

std::string BlockNames::of_data(const Task& task) const {
  std::vector<std::string> buffers;
  std::vector<Box> boxes;  // of the first buffer
  for (const Ref& write : task.writes) {
    const std::string& buffer = plan_.allocs[write.alloc.index()].buffer;
    if (std::ranges::find(buffers, buffer) == buffers.end()) buffers.push_back(buffer);
    if (buffer == buffers.front()) {
      boxes.insert(boxes.end(), write.boxes.begin(), write.boxes.end());
    }
  }
  if (buffers.empty()) return {};
  std::string out;
  for (const std::string& buffer : buffers) out += (out.empty() ? "" : ", ") + buffer;
  const auto table = static_cast<std::size_t>(blocks_.find_buffer(buffers.front()));
  const std::string blocks = of(blocks_.buffers()[table].digits, boxes);
  std::set<std::int32_t> sources;
  const RankId to = plan_.allocs[task.writes.front().alloc.index()].rank;
  for (const Ref& read : task.reads) {
    const RankId from = plan_.allocs[read.alloc.index()].rank;
    if (from != to) sources.insert(from.value);
  }
  return out + (blocks.empty() ? "" : " " + blocks) +
         (sources.empty() ? "" : " < " + print_values(sources));
}

std::string BlockNames::of(const Task& task) const {
  if (task.kind == TaskKind::Compute) {
    const std::string work = of_work(task);
    return task.nest + (work.empty() ? "" : " " + work);
  }
  const std::string data = of_data(task);
  if (task.kind == TaskKind::Copy && !data.empty()) return data;
  return std::string(print(task.kind)) + (data.empty() ? "" : " " + data);
}

std::vector<std::string> name_tasks(const Plan& plan) {
  const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), "a plan's form fits its program");
  const BlockNames names(plan, *blocks);
  std::vector<std::string> out;
  for (const Task& task : plan.tasks) out.push_back(names.of(task));
  return out;
}

}  // namespace harpe
