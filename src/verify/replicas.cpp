#include <algorithm>
#include <map>
#include <vector>

#include "verify/coverage.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

// The mesh axes along which homes of a buffer differ; along all others the homes are replicas.
std::vector<int> axes_of_home(const BufferModel& buffer) {
  std::vector<int> axes = buffer.partial;
  for (const std::vector<int>& placed : buffer.home) {
    axes.insert(axes.end(), placed.begin(), placed.end());
  }
  return axes;
}

}  // namespace

bool has_replicas(const Model& model) {
  return std::ranges::any_of(model.buffers, [&](const BufferModel& buffer) {
    std::int64_t homes = 1;
    for (const int axis : axes_of_home(buffer)) {
      homes *= model.mesh[static_cast<std::size_t>(axis)].size;
    }
    return buffer.role == Role::Out && homes < model.ranks;
  });
}

Checked<Ok> check_replicas(const Plan& plan, const Model& model, const Resolved& resolved,
                           Execution& bits) {
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> first;  // of a buffer's homes
  const Words words(plan, model);
  for (std::size_t id = 0; id < plan.allocs.size(); ++id) {
    const auto alloc = static_cast<std::int32_t>(id);
    const Footprint& footprint = resolved.footprint(alloc);
    const BufferModel& buffer = model.buffers[static_cast<std::size_t>(footprint.buffer)];
    if (plan.allocs[id].level != Level::Home || buffer.role != Role::Out) continue;
    const std::int64_t part = model.coordinate(plan.allocs[id].rank, axes_of_home(buffer));
    const auto [known, is_first] = first.try_emplace({footprint.buffer, part}, alloc);
    if (is_first) continue;
    for (std::int64_t block = 0; block < buffer.radix.blocks; ++block) {
      const bool held = model.is_home(footprint.buffer, plan.allocs[id].rank, block);
      if (buffer.is_empty(block) || !held) continue;
      const std::int64_t cell = product(footprint.cell_strides, point_of(buffer.radix, block));
      const auto at = static_cast<std::int32_t>(block);
      if (bits.held(alloc, cell, at) == bits.held(known->second, cell, at)) continue;
      return make_diag(DiagCode::V525, {{"block", words.block(footprint.buffer, block)},
                                        {"first", words.alloc(known->second)},
                                        {"second", words.alloc(alloc)}});
    }
  }
  return Ok{};
}

}  // namespace harpe::verifier
