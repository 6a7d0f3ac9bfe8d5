#include "verify/panel_steps.h"

#include <algorithm>

namespace harpe::verifier {
namespace {

Ref ref_to(AllocId alloc, WriteMode mode, std::vector<Box> boxes) {
  return {.alloc = alloc, .mode = mode, .boxes = std::move(boxes), .when = {}};
}

}  // namespace

Diag PanelSteps::misfit(const std::string& problem) const {
  return make_diag(DiagCode::V704, {{"kernel", kernel().name},
                                    {"launch", builder_.out().first.size() - 1},
                                    {"rank", launch_->rank.value},
                                    {"problem", problem}});
}

StepOrigin PanelSteps::origin_of(StepKind kind) const {
  return {.kind = kind,
          .launch = launch::LaunchId(static_cast<std::int64_t>(builder_.out().first.size()) - 1),
          .kernel = kernel_,
          .part = part_};
}

Task PanelSteps::task_of(TaskKind kind) const {
  Task task = make_task(queue_, kind);
  if (kind == TaskKind::Copy) return task;
  const StatementModel& model = statement();
  task.nest = words_.model().nests[static_cast<std::size_t>(model.nest)].name;
  task.stmt = model.index;
  return task;
}

int PanelSteps::target_of(int buffer) const {
  const auto found = std::ranges::find(statement().targets, buffer, &AccessModel::buffer);
  if (found == statement().targets.end()) return -1;
  return static_cast<int>(found - statement().targets.begin());
}

Checked<PlacedBlocks> PanelSteps::blocks_of(const launch::Place& place) {
  const Alloc& alloc = builder_.out().plan.allocs[place.alloc.index()];
  PlacedBlocks out{.alloc = place.alloc, .buffer = words_.model().find_buffer(alloc.buffer)};
  std::optional<std::vector<Box>> boxes = places_.find(out.buffer, place.span);
  if (boxes) {
    out.boxes = *std::move(boxes);
    return out;
  }
  return make_diag(DiagCode::V705, {{"kernel", kernel().name},
                                    {"launch", builder_.out().first.size() - 1},
                                    {"rank", launch_->rank.value},
                                    {"alloc", alloc.name},
                                    {"owner", alloc.rank.value},
                                    {"problem", "and cuts a block or leaves the buffer"}});
}

Checked<std::vector<PlacedBlocks>> PanelSteps::blocks_of(const std::vector<launch::Place>& places) {
  std::vector<PlacedBlocks> all;
  for (const launch::Place& place : places) {
    HP_TRY(all.emplace_back(), blocks_of(place));
  }
  return all;
}

// The statement of a task of the launch that reads and writes the buffers that the kernel does.
Checked<int> PanelSteps::find_statement() {
  const launch::Panel& panel = kernel().panels.front();
  if (panel.stores.empty() || panel.meets.empty()) return misfit("stores or meets nothing");
  const auto buffer_of = [&](const launch::Place& place) {
    return words_.model().find_buffer(builder_.out().plan.allocs[place.alloc.index()].buffer);
  };
  const launch::Arrival& arrival = kernel().arrivals[static_cast<std::size_t>(panel.meets.front())];
  for (const TaskId id : launch_->does) {
    const Task& task = plan_->tasks[id.index()];
    if (task.kind != TaskKind::Compute) continue;
    const int nest = words_.model().find_nest(task.nest);
    const int found =
        words_.model().nests[static_cast<std::size_t>(nest)].first_statement + task.stmt;
    const StatementModel& model = words_.model().statements[static_cast<std::size_t>(found)];
    const auto reads = [&](const launch::Place& place) {
      return std::ranges::count(model.operands, buffer_of(place), &AccessModel::buffer) > 0;
    };
    const auto writes = [&](const launch::Place& place) {
      return std::ranges::count(model.targets, buffer_of(place), &AccessModel::buffer) > 0;
    };
    if (std::ranges::all_of(arrival.reads, reads) && std::ranges::all_of(panel.stores, writes)) {
      return found;
    }
  }
  return misfit("does no statement of the launch's tasks");
}

bool PanelSteps::does(const Task& task) const {
  if (task.kind == TaskKind::Compute) {
    const StatementModel& model = statement();
    return task.nest == words_.model().nests[static_cast<std::size_t>(model.nest)].name &&
           task.stmt == model.index;
  }
  const auto is_stored = [&](const Ref& ref) {
    const auto stores = [&](const launch::Panel& panel) {
      return std::ranges::count(panel.stores, ref.alloc, &launch::Place::alloc) > 0;
    };
    return std::ranges::any_of(kernel().panels, stores) ||
           std::ranges::any_of(kernel().fused_copies, [&](const launch::FusedCopy& copy) {
             return copy.to.alloc == ref.alloc;
           });
  };
  return !task.writes.empty() && std::ranges::all_of(task.writes, is_stored);
}

Checked<Ok> PanelSteps::add(const Plan& plan, const launch::Launch& launch, std::int32_t kernel,
                            std::vector<TaskId>& left) {
  plan_ = &plan;
  launch_ = &launch;
  kernel_ = kernel;
  memories_.clear();
  stored_.clear();
  if (this->kernel().panels.empty()) return misfit("copies for others and does nothing itself");
  HP_TRY(statement_, find_statement());
  HP_REQUIRE_OK(find_held());
  part_ = 0;
  for (const launch::Panel& panel : this->kernel().panels) {
    HP_REQUIRE_OK(add_panel(panel));
    ++part_;
  }
  part_ = 0;
  for (const launch::FusedCopy& copy : this->kernel().fused_copies) {
    HP_REQUIRE_OK(add_copy(copy));
    ++part_;
  }
  for (std::size_t store = 0; store < this->kernel().fused_stores.size(); ++store) {
    std::vector<std::int32_t> steps;
    for (std::size_t panel = 0; panel < stored_.size(); ++panel) {
      const auto& by = this->kernel().panels[panel].fused_store;
      if (by == static_cast<std::int32_t>(store)) steps.push_back(stored_[panel]);
    }
    builder_.raise_behind(this->kernel().fused_stores[store], steps);
  }
  builder_.join(kernel_);
  std::erase_if(left, [&](TaskId id) { return does(plan.tasks[id.index()]); });
  return Ok{};
}

// Digits of targets that take more than one value in the kernel's stores.
Checked<Ok> PanelSteps::find_held() {
  holds_.clear();
  std::vector<std::vector<Box>> made(statement().targets.size());
  const PanelModel model(words_.model(), statement());
  for (const launch::Panel& panel : kernel().panels) {
    if (panel.stores.empty()) return misfit("stores nothing");
    HP_TRY(const PlacedBlocks stored, blocks_of(panel.stores.front()));
    const std::vector<Box> iterations = model.iterations(stored, {});
    for (std::size_t target = 0; target < made.size(); ++target) {
      for (Box& box : model.made_by(iterations, static_cast<int>(target))) {
        made[target].push_back(std::move(box));
      }
    }
  }
  for (const std::vector<Box>& boxes : made) {
    std::vector<bool>& holds = holds_.emplace_back(boxes.front().size(), false);
    for (std::size_t digit = 0; digit < holds.size(); ++digit) {
      const Range first = boxes.front()[digit];
      holds[digit] = first.hi - first.lo > 1 || std::ranges::any_of(boxes, [&](const Box& box) {
                       return box[digit] != first;
                     });
    }
  }
  return Ok{};
}

PanelSteps::Sum PanelSteps::make_sum(const PlacedBlocks& stored) {
  Sum sum;
  const PanelModel model(words_.model(), statement());
  const std::vector<Box> iterations = model.iterations(stored, {});
  for (std::size_t target = 0; target < statement().targets.size(); ++target) {
    sum.blocks.push_back(model.made_by(iterations, static_cast<int>(target)));
  }
  sum.allocs = memory_for(sum);
  return sum;
}

std::vector<AllocId> PanelSteps::memory_for(const Sum& sum) {
  const auto& made = sum.blocks.front();
  const auto is_free = [&](const Memory& memory) {
    return std::ranges::none_of(memory.made, [&](const Box& box) {
      return std::ranges::any_of(made,
                                 [&](const Box& own) { return intersect(box, own).has_value(); });
    });
  };
  auto memory = std::ranges::find_if(memories_, is_free);
  if (memory == memories_.end()) {
    Memory& fresh = memories_.emplace_back();
    for (std::size_t target = 0; target < statement().targets.size(); ++target) {
      const BufferModel& buffer =
          words_.model().buffers[static_cast<std::size_t>(statement().targets[target].buffer)];
      fresh.allocs.push_back(builder_.add_private(
          "launch " + std::to_string(builder_.out().first.size() - 1) + "." + buffer.name,
          buffer.name, buffer.dtype == DType::F64 ? DType::F64 : DType::F32, holds_[target]));
    }
    memory = memories_.end() - 1;
  }
  memory->made.insert(memory->made.end(), made.begin(), made.end());
  return memory->allocs;
}

Checked<Ok> PanelSteps::add_panel(const launch::Panel& panel) {
  queue_ = builder_.fork();
  HP_TRY(const std::vector<PlacedBlocks> stores, blocks_of(panel.stores));
  HP_TRY(const std::vector<PlacedBlocks> reads, blocks_of(panel.reads));
  if (target_of(stores.front().buffer) < 0) return misfit("stores no result of its statement");
  const Sum sum = make_sum(stores.front());
  std::vector<PlacedBlocks> operands;
  std::vector<PlacedBlocks> states;
  for (const PlacedBlocks& place : reads) {
    (target_of(place.buffer) >= 0 ? states : operands).push_back(place);
  }
  if (!states.empty()) HP_REQUIRE_OK(add_carry(states, sum));
  for (const std::int32_t arrival : panel.meets) {
    HP_REQUIRE_OK(add_meet(kernel().arrivals[static_cast<std::size_t>(arrival)], sum,
                           stores.front(), operands));
  }
  for (const launch::Addend& addend : panel.addends) HP_REQUIRE_OK(add_addend(addend, sum));
  return add_store(panel, sum, stores);
}

Checked<Ok> PanelSteps::add_carry(const std::vector<PlacedBlocks>& states, const Sum& sum) {
  if (states.size() != statement().targets.size()) {
    return misfit("goes on from " + count_of(static_cast<std::int64_t>(states.size()), "part") +
                  " of a state that has " + std::to_string(statement().targets.size()));
  }
  Task task = task_of(TaskKind::Fold);
  for (std::size_t target = 0; target < states.size(); ++target) {
    if (target_of(states[target].buffer) != static_cast<int>(target)) {
      return misfit("goes on from parts of a state in another order than its results");
    }
    task.reads.push_back(ref_to(states[target].alloc, WriteMode::Read, states[target].boxes));
    task.writes.push_back(ref_to(sum.allocs[target], WriteMode::Init, states[target].boxes));
  }
  (void)builder_.add_forked(origin_of(StepKind::Carry), std::move(task));
  return Ok{};
}

Checked<Ok> PanelSteps::add_meet(const launch::Arrival& arrival, const Sum& sum,
                                 const PlacedBlocks& stored,
                                 const std::vector<PlacedBlocks>& of_panel) {
  HP_TRY(std::vector<PlacedBlocks> operands, blocks_of(arrival.reads));
  operands.insert(operands.end(), of_panel.begin(), of_panel.end());
  const PanelModel model(words_.model(), statement());
  Task task = task_of(TaskKind::Compute);
  task.iter = model.iterations(stored, operands);
  if (task.iter.empty()) return misfit("meets operands that make nothing of what it stores");
  for (PlacedBlocks& place : operands) {
    task.reads.push_back(ref_to(place.alloc, WriteMode::Read, std::move(place.boxes)));
  }
  for (std::size_t target = 0; target < sum.allocs.size(); ++target) {
    task.writes.push_back(ref_to(sum.allocs[target], WriteMode::Add,
                                 model.made_by(task.iter, static_cast<int>(target))));
  }
  const std::int32_t step = builder_.add_forked(origin_of(StepKind::Meet), std::move(task));
  if (arrival.when) builder_.await(*arrival.when, step);
  return Ok{};
}

Checked<Ok> PanelSteps::add_addend(const launch::Addend& addend, const Sum& sum) {
  HP_TRY(PlacedBlocks place, blocks_of(addend.reads));
  const int target = target_of(place.buffer);
  if (target != 0 || sum.allocs.size() != 1) return misfit("adds what is no part of its sum");
  Task task = task_of(TaskKind::Fold);
  task.writes.push_back(ref_to(sum.allocs.front(), WriteMode::Add, place.boxes));
  task.reads.push_back(ref_to(place.alloc, WriteMode::Read, std::move(place.boxes)));
  const std::int32_t step = builder_.add_forked(origin_of(StepKind::Addend), std::move(task));
  if (addend.when) builder_.await(*addend.when, step);
  return Ok{};
}

Checked<Ok> PanelSteps::add_store(const launch::Panel& panel, const Sum& sum,
                                  const std::vector<PlacedBlocks>& stores) {
  const Alloc& first = builder_.out().plan.allocs[stores.front().alloc.index()];
  if (first.dtype != panel.dtype) {
    return make_diag(DiagCode::V722, {{"panel", part_},
                                      {"launch", builder_.out().first.size() - 1},
                                      {"rank", launch_->rank.value},
                                      {"found", std::string(print(panel.dtype))},
                                      {"alloc", "`" + first.name + "`"},
                                      {"wanted", std::string(print(first.dtype))}});
  }
  const bool is_final = first.level == Level::Home || first.level == Level::Stage;
  Task task = task_of(panel.adds ? TaskKind::Fold : is_final ? TaskKind::Finalise : TaskKind::Copy);
  const WriteMode mode = panel.adds ? WriteMode::Add : is_final ? WriteMode::Set : WriteMode::Init;
  for (const PlacedBlocks& place : stores) {
    const int target = target_of(place.buffer);
    if (target < 0) return misfit("stores no result of its statement");
    task.reads.push_back(
        ref_to(sum.allocs[static_cast<std::size_t>(target)], WriteMode::Read, place.boxes));
    task.writes.push_back(ref_to(place.alloc, mode, place.boxes));
  }
  stored_.push_back(builder_.add_forked(origin_of(StepKind::Store), std::move(task)));
  return Ok{};
}

Checked<Ok> PanelSteps::add_copy(const launch::FusedCopy& copy) {
  queue_ = builder_.fork();
  HP_TRY(PlacedBlocks from, blocks_of(copy.from));
  HP_TRY(PlacedBlocks to, blocks_of(copy.to));
  if (from.buffer != to.buffer || from.boxes != to.boxes) {
    return misfit("copies blocks to a place of others");
  }
  Task task = task_of(TaskKind::Copy);
  task.reads.push_back(ref_to(from.alloc, WriteMode::Read, std::move(from.boxes)));
  task.writes.push_back(ref_to(to.alloc, WriteMode::Set, std::move(to.boxes)));
  const std::int32_t step = builder_.add_forked(origin_of(StepKind::Copy), std::move(task));
  if (!copy.raises) return Ok{};
  std::int64_t bytes = size_in_bytes(builder_.out().plan.allocs[copy.to.alloc.index()].dtype);
  for (const Interval& part : copy.to.span) bytes *= part.size();
  const std::int64_t chunks = (bytes + launch::kCopyChunkBytes - 1) / launch::kCopyChunkBytes;
  builder_.raise({.signal = *copy.raises, .adds = static_cast<std::uint32_t>(chunks)}, step);
  return Ok{};
}

}  // namespace harpe::verifier
