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

Task PanelSteps::task_of(TaskKind kind) const { return task_of(kind, statement()); }

Task PanelSteps::task_of(TaskKind kind, const StatementModel& model) const {
  Task task = make_task(queue_, kind);
  if (kind == TaskKind::Copy) return task;
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

const std::vector<Dim>& PanelSteps::dims_of(int buffer) const {
  const BufferModel& model = words_.model().buffers[static_cast<std::size_t>(buffer)];
  return find_buffer(plan_->program, model.name)->dims;
}

int PanelSteps::find_map_statement(const launch::Map& map) const {
  const int nest = words_.model().find_nest(map.nest);
  return words_.model().nests[static_cast<std::size_t>(nest)].first_statement + map.stmt;
}

// The statement of the launch's task that reads and writes the same buffers as the kernel. With
// maps, the kernel writes what the first map reads.
Checked<int> PanelSteps::find_statement() {
  const launch::Panel& panel = kernel().panels.front();
  if (panel.stores.empty() || panel.meets.empty()) return misfit("stores or meets nothing");
  const auto buffer_of = [&](const launch::Place& place) {
    return words_.model().find_buffer(builder_.out().plan.allocs[place.alloc.index()].buffer);
  };
  const launch::Arrival& arrival = kernel().arrivals[static_cast<std::size_t>(panel.meets.front())];
  const StatementModel* const map =
      panel.maps.empty()
          ? nullptr
          : &words_.model()
                 .statements[static_cast<std::size_t>(find_map_statement(panel.maps.front()))];
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
    const auto is_mapped = [&](const AccessModel& target) {
      return std::ranges::count(map->operands, target.buffer, &AccessModel::buffer) > 0;
    };
    const bool makes = map == nullptr ? std::ranges::all_of(panel.stores, writes)
                                      : std::ranges::all_of(model.targets, is_mapped);
    if (makes && std::ranges::all_of(arrival.reads, reads)) return found;
  }
  return misfit("does no statement of the launch's tasks");
}

// Follows the maps backwards from the stored buffer to the value that the first map takes.
Checked<PanelSteps::Chain> PanelSteps::find_chain(const launch::Panel& panel) {
  Chain chain;
  HP_TRY(chain.made, blocks_of(panel.stores.front()));
  for (const launch::Map& map : panel.maps) chain.maps.push_back(find_map_statement(map));
  for (std::size_t i = chain.maps.size(); i-- > 0;) {
    const auto& all = words_.model().statements;
    const StatementModel& map = all[static_cast<std::size_t>(chain.maps[i])];
    const StatementModel& before =
        i == 0 ? statement() : all[static_cast<std::size_t>(chain.maps[i - 1])];
    const int value = before.targets.front().buffer;
    const auto operand = std::ranges::find(map.operands, value, &AccessModel::buffer);
    const bool makes = map.targets.front().buffer == chain.made.buffer;
    if (!makes || operand == map.operands.end() || before.targets.size() != 1 ||
        dims_of(value) != dims_of(chain.made.buffer)) {
      return misfit(makes ? "applies `" + panel.maps[i].nest + "." +
                                std::to_string(panel.maps[i].stmt) + "` to what it has not made"
                          : "stores what its last map does not make");
    }
    const PanelModel model(words_.model(), map);
    chain.made.boxes = model.touched_by(model.iterations(chain.made, {}), *operand);
    chain.made.buffer = value;
  }
  return chain;
}

bool PanelSteps::does(const Task& task) const {
  const auto is_of = [&](const StatementModel& model) {
    return task.nest == words_.model().nests[static_cast<std::size_t>(model.nest)].name &&
           task.stmt == model.index;
  };
  const auto is_mapped = [&](const launch::Panel& panel) {
    return std::ranges::any_of(panel.maps, [&](const launch::Map& map) {
      return task.nest == map.nest && task.stmt == map.stmt;
    });
  };
  const auto has_maps = [](const launch::Panel& panel) { return !panel.maps.empty(); };
  if (task.kind == TaskKind::Compute) {
    return is_of(statement()) || std::ranges::any_of(kernel().panels, is_mapped);
  }
  // Only the kernel itself holds the value that maps are applied to.
  if (task.kind == TaskKind::Finalise && is_of(statement()) &&
      std::ranges::any_of(kernel().panels, has_maps)) {
    return true;
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
  if (launch_ != &launch) done_.clear();
  launch_ = &launch;
  kernel_ = kernel;
  memories_.clear();
  stored_.clear();
  if (this->kernel().panels.empty()) return misfit("copies for others and does nothing itself");
  HP_TRY(statement_, find_statement());
  model_ = &models_.try_emplace(statement_, words_.model(), statement()).first->second;
  HP_REQUIRE_OK(find_sums());
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

// Finds what each panel makes, and the digits of targets that take more than one value in the
// kernel's stores.
Checked<Ok> PanelSteps::find_sums() {
  sums_.clear();
  holds_.clear();
  for (const launch::Panel& panel : kernel().panels) {
    if (panel.stores.empty()) return misfit("stores nothing");
    HP_TRY(const Chain chain, find_chain(panel));
    const std::vector<Box> iterations = model_->iterations(chain.made, {});
    Sum& sum = sums_.emplace_back();
    for (std::size_t target = 0; target < statement().targets.size(); ++target) {
      sum.blocks.push_back(model_->made_by(iterations, static_cast<int>(target)));
    }
  }
  for (std::size_t target = 0; target < statement().targets.size(); ++target) {
    const auto& first_boxes = sums_.front().blocks[target];
    std::vector<bool>& holds = holds_.emplace_back(first_boxes.front().size(), false);
    for (std::size_t digit = 0; digit < holds.size(); ++digit) {
      const Range first = first_boxes.front()[digit];
      const auto differs = [&](const Box& box) { return box[digit] != first; };
      holds[digit] = first.hi - first.lo > 1 || std::ranges::any_of(sums_, [&](const Sum& sum) {
                       return std::ranges::any_of(sum.blocks[target], differs);
                     });
    }
  }
  return Ok{};
}

std::vector<AllocId> PanelSteps::memory_for(const Sum& sum) {
  const auto& made = sum.blocks.front();
  const auto is_free = [&](const Memory& memory) {
    return std::ranges::none_of(memory.made, [&](const Box& box) {
      return std::ranges::any_of(made, [&](const Box& own) { return meet(box, own); });
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
  HP_TRY(const Chain chain, find_chain(panel));
  if (target_of(chain.made.buffer) < 0) return misfit("stores no result of its statement");
  if (panel.meets.empty() && panel.reads.empty()) return add_total(panel, stores);
  Sum sum = std::move(sums_[static_cast<std::size_t>(part_)]);
  sum.allocs = memory_for(sum);
  std::vector<PlacedBlocks> operands;
  std::vector<PlacedBlocks> states;
  for (const PlacedBlocks& place : reads) {
    (target_of(place.buffer) >= 0 ? states : operands).push_back(place);
  }
  if (!states.empty()) HP_REQUIRE_OK(add_carry(states, sum));
  for (const std::int32_t arrival : panel.meets) {
    HP_REQUIRE_OK(
        add_meet(kernel().arrivals[static_cast<std::size_t>(arrival)], sum, chain.made, operands));
  }
  for (const launch::Addend& addend : panel.addends) HP_REQUIRE_OK(add_addend(addend, sum));
  HP_REQUIRE_OK(check_type(panel));
  if (panel.maps.empty()) return add_store(panel, sum, stores);
  if (stores.size() != 1) return misfit("stores more than its last map makes");
  return add_maps(panel, chain, sum, stores.front());
}

// Checks that no other kernel of the launch runs the same iteration; their stores could hide it.
Checked<Ok> PanelSteps::note_done(const std::vector<Box>& iterations) {
  if (launch_->kernels.size() == 1) return Ok{};
  for (const Box& box : iterations) {
    for (const Done& done : done_) {
      const bool is_other = done.kernel != kernel_ && done.statement == statement_;
      if (is_other && meet(done.iterations, box)) {
        return misfit("does what kernel " + std::to_string(done.kernel) + " does");
      }
    }
    done_.push_back({.kernel = kernel_, .statement = statement_, .iterations = box});
  }
  return Ok{};
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
  Task task = task_of(TaskKind::Compute);
  task.iter = model_->iterations(stored, operands);
  if (task.iter.empty()) return misfit("meets operands that make nothing of what it stores");
  HP_REQUIRE_OK(note_done(task.iter));
  for (PlacedBlocks& place : operands) {
    task.reads.push_back(ref_to(place.alloc, WriteMode::Read, std::move(place.boxes)));
  }
  for (std::size_t target = 0; target < sum.allocs.size(); ++target) {
    task.writes.push_back(ref_to(sum.allocs[target], WriteMode::Add,
                                 model_->made_by(task.iter, static_cast<int>(target))));
  }
  const std::int32_t step = builder_.add_forked(origin_of(StepKind::Meet), std::move(task));
  if (arrival.when) builder_.await(*arrival.when, step);
  return Ok{};
}

// The addend's places, one per target of the statement, in their order.
Checked<std::vector<PlacedBlocks>> PanelSteps::places_of(const launch::Addend& addend) {
  HP_TRY(std::vector<PlacedBlocks> places, blocks_of(addend.reads));
  bool fits = places.size() == statement().targets.size();
  for (std::size_t target = 0; fits && target < places.size(); ++target) {
    fits = target_of(places[target].buffer) == static_cast<int>(target);
  }
  if (!fits) return misfit("adds what is no part of its sum");
  return places;
}

Checked<Ok> PanelSteps::add_addend(const launch::Addend& addend, const Sum& sum) {
  Task task = task_of(TaskKind::Fold);
  HP_TRY(const std::vector<PlacedBlocks> places, places_of(addend));
  for (std::size_t target = 0; target < places.size(); ++target) {
    task.writes.push_back(ref_to(sum.allocs[target], WriteMode::Add, places[target].boxes));
    task.reads.push_back(ref_to(places[target].alloc, WriteMode::Read, places[target].boxes));
  }
  const std::int32_t step = builder_.add_forked(origin_of(StepKind::Addend), std::move(task));
  if (addend.when) {
    builder_.await(*addend.when, {.step = step, .first = 0, .count = places.size()});
  }
  return Ok{};
}

// A panel that meets nothing sums what its addends read, in their order, at the place where it
// stores; a single addend is copied. What earlier panels store on the rank is there, because the
// thread that adds it has stored it.
Checked<Ok> PanelSteps::add_total(const launch::Panel& panel,
                                  const std::vector<PlacedBlocks>& stores) {
  const bool is_sum = !panel.addends.empty() && stores.size() == statement().targets.size() &&
                      panel.maps.empty() && !panel.adds;
  if (!is_sum) return misfit("stores what it does not make");
  HP_REQUIRE_OK(check_type(panel));
  Task task = task_of(panel.addends.size() == 1 ? TaskKind::Copy : TaskKind::Finalise);
  for (const launch::Addend& addend : panel.addends) {
    HP_TRY(std::vector<PlacedBlocks> places, places_of(addend));
    for (PlacedBlocks& place : places) {
      task.reads.push_back(ref_to(place.alloc, WriteMode::Read, std::move(place.boxes)));
    }
  }
  for (std::size_t target = 0; target < stores.size(); ++target) {
    if (target_of(stores[target].buffer) != static_cast<int>(target)) {
      return misfit("stores parts of a state in another order than its results");
    }
    task.writes.push_back(ref_to(stores[target].alloc, WriteMode::Set, stores[target].boxes));
  }
  const std::int32_t step = builder_.add_forked(origin_of(StepKind::Store), std::move(task));
  std::size_t read = 0;
  for (const launch::Addend& addend : panel.addends) {
    if (addend.when) {
      builder_.await(*addend.when, {.step = step, .first = read, .count = addend.reads.size()});
    }
    read += addend.reads.size();
    for (std::size_t before = 0; before < stored_.size(); ++before) {
      const bool is_here = kernel().panels[before].stores == addend.reads;
      if (is_here) builder_.order(stored_[before], step);
    }
  }
  stored_.push_back(step);
  return Ok{};
}

// Memory as wide as that of sums, so that only the last map's result is rounded.
AllocId PanelSteps::value_memory(int buffer) {
  const BufferModel& model = words_.model().buffers[static_cast<std::size_t>(buffer)];
  return builder_.add_private(
      "launch " + std::to_string(builder_.out().first.size() - 1) + "." + model.name, model.name,
      DType::F64, std::vector<bool>(model.radix.extents.size(), true), Level::Stage);
}

// Turns the sum into a value; each map makes the next value, and the last one is stored.
Checked<Ok> PanelSteps::add_maps(const launch::Panel& panel, const Chain& chain, const Sum& sum,
                                 const PlacedBlocks& stored) {
  PlacedBlocks value = chain.made;
  value.alloc = value_memory(value.buffer);
  Task round = task_of(TaskKind::Finalise);
  round.reads.push_back(ref_to(sum.allocs.front(), WriteMode::Read, value.boxes));
  round.writes.push_back(ref_to(value.alloc, WriteMode::Set, value.boxes));
  (void)builder_.add_forked(origin_of(StepKind::Map), std::move(round));
  for (std::size_t i = 0; i < chain.maps.size(); ++i) {
    const StatementModel& map = words_.model().statements[static_cast<std::size_t>(chain.maps[i])];
    const PanelModel model(words_.model(), map);
    HP_TRY(std::vector<PlacedBlocks> operands, blocks_of(panel.maps[i].reads));
    operands.push_back(value);
    Task task = task_of(TaskKind::Compute, map);
    const bool is_last = i + 1 == chain.maps.size();
    const AccessModel& target = map.targets.front();
    const PlacedBlocks all = {.alloc = {}, .buffer = value.buffer, .boxes = value.boxes};
    task.iter = model.iterations(is_last ? stored : all, operands);
    if (task.iter.empty()) return misfit("applies a map to operands that make nothing of it");
    for (PlacedBlocks& place : operands) {
      task.reads.push_back(ref_to(place.alloc, WriteMode::Read, std::move(place.boxes)));
    }
    value = {.alloc = is_last ? stored.alloc : value_memory(target.buffer),
             .buffer = target.buffer,
             .boxes = model.touched_by(task.iter, target)};
    task.writes.push_back(ref_to(value.alloc, WriteMode::Set, value.boxes));
    const std::int32_t step =
        builder_.add_forked(origin_of(is_last ? StepKind::Store : StepKind::Map), std::move(task));
    if (is_last) stored_.push_back(step);
  }
  return Ok{};
}

Checked<Ok> PanelSteps::check_type(const launch::Panel& panel) const {
  const Alloc& first = builder_.out().plan.allocs[panel.stores.front().alloc.index()];
  if (first.dtype == panel.dtype) return Ok{};
  return make_diag(DiagCode::V722, {{"panel", part_},
                                    {"launch", builder_.out().first.size() - 1},
                                    {"rank", launch_->rank.value},
                                    {"found", std::string(print(panel.dtype))},
                                    {"alloc", "`" + first.name + "`"},
                                    {"wanted", std::string(print(first.dtype))}});
}

Checked<Ok> PanelSteps::add_store(const launch::Panel& panel, const Sum& sum,
                                  const std::vector<PlacedBlocks>& stores) {
  const Alloc& first = builder_.out().plan.allocs[stores.front().alloc.index()];
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
