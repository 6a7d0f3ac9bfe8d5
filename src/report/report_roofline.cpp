#include "report/report_roofline.h"

#include <algorithm>
#include <map>

#include "machine/rates.h"
#include "plan/work.h"

namespace harpe {
namespace {

// The highest peak of the plan's leaves, in operations per second.
double peak_of(const Plan& plan, const Machine& machine) {
  constexpr double kMany = 1e15;  // operations, so that picoseconds do not round
  double peak = 0;
  for (const Nest& nest : plan.program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      if (stmt.operands.empty()) continue;
      const Buffer* const buffer = find_buffer(plan.program, stmt.operands.front().buffer);
      if (buffer == nullptr) continue;
      const Picoseconds time = leaf_bound(machine, stmt.leaf, print(buffer->dtype), kMany, 0);
      if (time > Picoseconds(1)) peak = std::max(peak, kMany / time.seconds());
    }
  }
  return peak;
}

// The bytes that one kind of resource brought to the rank that received most.
struct Brought {
  std::string name;
  double bandwidth = 0;
  double bytes = 0;
};
using Key = std::pair<ResourceKind, std::int32_t>;

std::map<Key, Brought> brought_by(const Simulation& simulation, const Machine& machine) {
  std::map<Key, Brought> all;
  for (const ResourceShare& share : simulation.shares) {
    const Resource& resource = share.resource;
    const bool memory = resource.kind == ResourceKind::Memory;
    if (!memory && resource.kind != ResourceKind::Ingress && resource.kind != ResourceKind::Bus) {
      continue;
    }
    Brought& brought = all[{resource.kind, memory ? 0 : resource.level}];
    brought.name =
        memory ? "memory" : machine.levels[static_cast<std::size_t>(resource.level)].name;
    brought.bandwidth = resource.capacity;
    brought.bytes =
        std::max(brought.bytes, share.utilisation * resource.capacity * simulation.total.seconds());
  }
  std::erase_if(all, [](const auto& item) { return item.second.bytes < 1; });
  return all;
}

const Brought* busiest_link(const std::map<Key, Brought>& all) {
  const Brought* found = nullptr;
  for (const auto& [key, brought] : all) {
    if (key.first == ResourceKind::Memory) continue;
    const double time = brought.bytes / brought.bandwidth;
    if (found == nullptr || time > found->bytes / found->bandwidth) found = &brought;
  }
  return found;
}

}  // namespace

std::optional<PageRoofline> make_roofline(const std::vector<ReportedPlan>& plans,
                                          const Machine& machine) {
  PageRoofline roof{.peak = peak_of(plans.front().plan, machine), .slopes = {}, .points = {}};
  if (roof.peak <= 0) return std::nullopt;
  for (const ReportedPlan& plan : plans) {
    const std::vector<double> work = work_of(plan.plan);
    const double flops = work.empty() ? 0 : std::ranges::max(work);
    if (flops <= 0 || plan.simulation.total <= Picoseconds()) continue;
    const bool chosen = &plan == &plans.front();
    const std::map<Key, Brought> all = brought_by(plan.simulation, machine);
    for (const auto& [key, brought] : all) {
      // For the compared plans only the bytes of the busiest link are shown, because they differ
      // there.
      if (!chosen && &brought != busiest_link(all)) continue;
      auto slope = std::ranges::find(roof.slopes, brought.name, &PageSlope::name);
      if (slope == roof.slopes.end()) {
        roof.slopes.push_back({brought.name, brought.bandwidth});
        slope = roof.slopes.end() - 1;
      }
      roof.points.push_back({.label = chosen ? brought.name : plan.label,
                             .slope = static_cast<std::int32_t>(slope - roof.slopes.begin()),
                             .intensity = flops / brought.bytes,
                             .rate = flops / plan.simulation.total.seconds(),
                             .winner = chosen});
    }
  }
  if (roof.points.empty()) return std::nullopt;
  return roof;
}

}  // namespace harpe
