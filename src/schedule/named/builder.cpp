#include "schedule/named/builder.h"

#include <algorithm>

namespace harpe {

std::int64_t bytes_of(const Program& program, const std::string& buffer) {
  const Buffer* const found = find_buffer(program, buffer);
  std::int64_t bytes = size_in_bytes(found->dtype);
  for (const std::int64_t size : shape_of(program, *found)) bytes *= size;
  return bytes;
}

std::int64_t push_chunks(std::int64_t bytes, std::int64_t most) {
  constexpr std::int64_t kLeastBytes = std::int64_t{8} << 20;
  return std::clamp<std::int64_t>(bytes / kLeastBytes, 1, most);
}

ScheduleBuilder::ScheduleBuilder(std::string_view schedule, const Program& program,
                                 const MeshPlan& plan)
    : program_(program),
      plan_(plan),
      script_{std::string(schedule), program.name, plan.mesh().name, {}} {
  for (const Axis* axis : axes_of(program)) taken_.insert(axis->name);
  for (const MeshAxis& axis : plan.mesh().axes) taken_.insert(axis.name);
  for (const MeshPlan::Refinement& line : plan.refinements()) {
    RefineAxis step{plan.mesh().name, line.axis, line.factors, {}};
    for (std::size_t i = 0; i < line.parts.size(); ++i) {
      step.parts.push_back(choose_name(line.axis + "_" + std::to_string(i)));
      parts_[line.parts[i]] = step.parts.back();
    }
    add(step);
  }
}

void ScheduleBuilder::add(const Primitive& primitive) {
  script_.steps.push_back(to_step(primitive));
}

std::string ScheduleBuilder::choose_name(const std::string& base) {
  std::string name = base;
  while (!taken_.insert(name).second) name += "_";
  return name;
}

MeshRef ScheduleBuilder::axes(const MeshPlan::Level& level) const {
  MeshRef names;
  for (const int part : level.parts) {
    const auto refined = parts_.find(part);
    names.push_back(refined == parts_.end() ? plan_.axis_of(part) : refined->second);
  }
  return names;
}

std::vector<std::string> ScheduleBuilder::tile(const std::string& axis,
                                               const std::vector<std::int64_t>& factors,
                                               const std::string& base) {
  Tile step{axis, factors, {}};
  for (std::size_t i = 0; i <= factors.size(); ++i) {
    step.digits.push_back(choose_name(base + std::to_string(i)));
  }
  add(step);
  return step.digits;
}

void ScheduleBuilder::balance(const std::string& axis, const std::vector<std::string>& zigzag) {
  add(Balance{axis, BalanceKind::Zigzag, LayoutArgs{Name{zigzag[0]}, Name{zigzag[1]}}});
}

void ScheduleBuilder::shard(const std::vector<std::string>& buffers, const std::string& digit,
                            const MeshPlan::Level& level) {
  if (level.empty()) return;
  for (const std::string& buffer : buffers) add(Shard{buffer, digit, axes(level)});
}

void ScheduleBuilder::parallelize(const std::string& nest, const std::string& digit,
                                  const MeshPlan::Level& level) {
  if (!level.empty()) add(Parallelize{nest, digit, axes(level)});
}

void ScheduleBuilder::rotate(const std::string& nest, const std::string& digit,
                             const MeshPlan::Level& level, std::int64_t offset) {
  const std::int64_t start = offset % level.ranks;
  add(Serialize{nest, digit});
  add(Shift{{nest, digit}, axes(level), start == 0 ? std::nullopt : std::optional(start)});
}

void ScheduleBuilder::stage(const std::string& nest, const std::vector<std::string>& buffers,
                            const MeshPlan::Level& level, const std::string& at,
                            const Transfer& transfer) {
  if (buffers.empty()) return;
  const auto loop = at.empty() ? std::nullopt : std::optional(at);
  add(Stage{nest, buffers, axes(level), loop, transfer.how, transfer.by});
  set_attributes(nest, buffers, axes(level), transfer);
}

void ScheduleBuilder::drain(const std::string& nest, const std::vector<std::string>& buffers,
                            const MeshPlan::Level& level, const std::string& at,
                            const Transfer& transfer) {
  if (buffers.empty()) return;
  const auto loop = at.empty() ? std::nullopt : std::optional(at);
  add(Drain{nest, buffers, axes(level), loop, transfer.how, transfer.by});
  if (transfer.whole_states) keep_states(nest, buffers, axes(level));
  set_attributes(nest, buffers, axes(level), transfer);
}

void ScheduleBuilder::keep_states(const std::string& nest, const std::vector<std::string>& buffers,
                                  const MeshRef& over) {
  const Nest* found = find_nest(program_, nest);
  for (const std::string& name : buffers) {
    const DType dtype = find_buffer(program_, name)->dtype;
    const bool is_sum = std::ranges::any_of(found->stmts, [&](const Stmt& stmt) {
      return stmt.monoid == Monoid::Sum &&
             std::ranges::find(stmt.targets, name, &Access::buffer) != stmt.targets.end();
    });
    if (!is_sum || state_dtype(dtype) == dtype) continue;
    add(Compress{nest, {name}, over, std::nullopt, state_dtype(dtype)});
  }
}

void ScheduleBuilder::set_attributes(const std::string& nest,
                                     const std::vector<std::string>& buffers, const MeshRef& over,
                                     const Transfer& transfer) {
  if (transfer.depth) add(Pipeline{nest, buffers, over, std::nullopt, *transfer.depth});
  if (transfer.via) add(Bind{nest, buffers, over, std::nullopt, *transfer.via});
  if (transfer.signal) {
    add(SignalBy{nest, buffers, over, std::nullopt, transfer.signal, std::nullopt});
  }
}

}  // namespace harpe
