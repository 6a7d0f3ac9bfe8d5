#include "verify/words.h"

namespace harpe::verifier {

std::string count_of(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

const char* mode_word(WriteMode mode) {
  switch (mode) {
    case WriteMode::Read:
      return "read";
    case WriteMode::Init:
      return "init";
    case WriteMode::Add:
      return "add";
    case WriteMode::Set:
      return "set";
  }
  return "";
}

RankId Words::rank_of(std::int64_t task) const {
  return plan_.queues[plan_.tasks[static_cast<std::size_t>(task)].queue.index()].rank;
}

std::string Words::task(TaskId id) const {
  if (name_task_) return name_task_(id.value);
  const Task& task = plan_.tasks[id.index()];
  std::string what(task.kind == TaskKind::Collective ? print(task.collective) : print(task.kind));
  if (!task.nest.empty()) what += " " + task.nest + "." + std::to_string(task.stmt);
  return "task " + std::to_string(id.value) + " (" + what + " on rank " +
         std::to_string(rank_of(id.value).value) + ")";
}

std::string Words::alloc(std::int64_t id) const {
  const Alloc& alloc = plan_.allocs[static_cast<std::size_t>(id)];
  return "`" + alloc.name + "` of rank " + std::to_string(alloc.rank.value);
}

// Digits with one value carry no information and are left out.
std::string Words::point(const Radix& radix, std::int64_t block) const {
  const std::vector<std::int32_t> values = point_of(radix, block);
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (radix.extents[i] == 1) continue;
    text += text.empty() ? "[" : ", ";
    text += model_.digits[static_cast<std::size_t>(radix.digits[i])].name + "=" +
            std::to_string(values[i]);
  }
  return text.empty() ? text : text + "]";
}

std::string Words::block(int buffer, std::int64_t block) const {
  const BufferModel& model = model_.buffers[static_cast<std::size_t>(buffer)];
  const std::string where = point(model.radix, block);
  return "`" + model.name + "`" + (where.empty() ? "" : " " + where);
}

std::string Words::iteration(int nest, std::int64_t block) const {
  const NestModel& model = model_.nests[static_cast<std::size_t>(nest)];
  const std::string where = point(model.space, block);
  return where.empty() ? "the one iteration of " + model.name : "iteration " + where;
}

std::string Words::cut(const Cut& cut) const {
  if (cut.is_whole()) return "all iterations";
  return "iterations with " + model_.digits[static_cast<std::size_t>(cut.digit)].name + "=" +
         std::to_string(cut.value);
}

std::string Words::statement(int statement) const {
  const StatementModel& model = model_.statements[static_cast<std::size_t>(statement)];
  return model_.nests[static_cast<std::size_t>(model.nest)].name + "." +
         std::to_string(model.index);
}

}  // namespace harpe::verifier
