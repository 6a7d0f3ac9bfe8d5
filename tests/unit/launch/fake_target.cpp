#include "tests/unit/launch/fake_target.h"

#include <algorithm>

#include "leaves/leaf.h"

namespace harpe::launch::passing {
namespace {

constexpr std::size_t kOfAttention = 3;  // operands

}  // namespace

Target::Facts facts_of(const Abilities& can) {
  return {.name = "fake",
          .copy_engine = "copy",
          .sms = kSms,
          .shares_sms = can.shares_sms,
          .chunk_bytes = kChunkBytes,
          .sms_for_signals = kSmsForSignals,
          .sms_for_kernels = kSmsForKernels,
          .copy_blocks = can.copy_blocks,
          .most_in_data = can.most_in_data,
          .most_bounds = can.most_bounds,
          .exchanges = {.engine = ExchangeEngine::Pull}};
}

std::vector<Place> FakeOffers::places_of(const std::vector<Ref>& refs) {
  std::vector<Place> places;
  for (const Ref& ref : refs) places.push_back(layouts_.place_of(ref).value());
  return places;
}

bool FakeOffers::is_pointwise(const Task& task) const {
  const Stmt& stmt =
      find_nest(plan_.program, task.nest)->stmts[static_cast<std::size_t>(task.stmt)];
  const LeafContract* const leaf = find_leaf_contract(stmt.leaf);
  return leaf != nullptr && leaf->pointwise;
}

Checked<std::span<const Kernel>> FakeOffers::kernels_of(TaskId id) {
  const Task& task = plan_.tasks[id.index()];
  if (task.kind == TaskKind::Entry || task.kind == TaskKind::Exit) return std::span<const Kernel>();
  Kernel kernel;
  kernel.name = task.kind == TaskKind::Copy && task.via != Via::Sm ? "copy" : "move";
  if (task.kind == TaskKind::Compute && !is_pointwise(task)) {
    std::vector<Place> operands = places_of(task.reads);
    Panel panel{.meets = {0}, .stores = places_of(task.writes)};
    panel.adds = task.writes.front().mode == WriteMode::Add;
    const bool is_attention = operands.size() == kOfAttention;
    kernel.name = is_attention ? "attention" : "gemm";
    if (is_attention) {
      panel.reads = {operands.front()};
      operands.erase(operands.begin());
    }
    kernel.arrivals = {{.reads = std::move(operands)}};
    kernel.panels = {std::move(panel)};
  }
  can_.edit(id, kernel);
  kernel_ = std::move(kernel);
  return std::span<const Kernel>(&kernel_, 1);
}

std::vector<Kernel> FakeOffers::batched(const std::vector<TaskId>& tasks) {
  Kernel kernel;
  kernel.name = "batched";
  kernel.joins = static_cast<std::int32_t>(tasks.size());
  return {kernel};
}

// A kernel exists for every task by itself; `can` decides about the rest.
std::optional<std::string> FakeOffers::choose(const Launch& launch, const Kernel& kernel) {
  if (!can_.can(launch, kernel)) return std::nullopt;
  return "panels " + std::to_string(kernel.panels.size());
}

}  // namespace harpe::launch::passing
