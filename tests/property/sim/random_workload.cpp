#include "tests/property/sim/random_workload.h"

#include <algorithm>

namespace harpe {
namespace {

std::vector<Use> random_uses(Draw& draw, std::int64_t resources) {
  std::vector<Use> uses;
  for (std::int64_t r = 0; r < resources; ++r) {
    if (draw.below(3) != 0) continue;
    uses.push_back({static_cast<std::int32_t>(r), static_cast<double>(1 + draw.below(10))});
  }
  return uses;
}

}  // namespace

Workload random_workload(std::uint64_t seed, const WorkloadSizes& sizes) {
  Draw draw(seed);
  Workload workload;
  workload.queues = static_cast<std::int32_t>(sizes.queues);
  for (std::int64_t r = 0; r < sizes.resources; ++r) {
    workload.resources.push_back(
        {.kind = ResourceKind::Egress, .capacity = static_cast<double>(10 + draw.below(10))});
  }
  for (std::int64_t i = 0; i < sizes.activities; ++i) {
    Activity activity;
    activity.queue = static_cast<std::int32_t>(draw.below(sizes.queues + 1)) - 1;
    activity.start = Picoseconds(draw.below(2) * draw.below(1'000));
    activity.work = Picoseconds(draw.below(5) == 0 ? 0 : draw.below(100'000));
    activity.uses = random_uses(draw, sizes.resources);
    workload.activities.push_back(std::move(activity));
    for (std::int64_t edges = i == 0 ? 0 : draw.below(3); edges > 0; --edges) {
      workload.dependencies.push_back({static_cast<std::int32_t>(draw.below(i)),
                                       static_cast<std::int32_t>(i), WaitKind::Event,
                                       Picoseconds(draw.below(2) * draw.below(500))});
    }
  }
  return workload;
}

Workload random_ring(std::uint64_t seed, const WorkloadSizes& sizes, std::int64_t copies) {
  const Workload one = random_workload(seed, sizes);
  Draw draw(~seed);
  std::vector<std::int64_t> edge_steps;
  for (std::size_t i = 0; i < one.dependencies.size(); ++i) {
    edge_steps.push_back(draw.below(2) * draw.below(copies));
  }
  std::vector<std::int64_t> use_steps;
  for (const Activity& activity : one.activities) {
    for (std::size_t u = 0; u < activity.uses.size(); ++u) {
      use_steps.push_back(draw.below(2) * draw.below(copies));
    }
  }
  const auto at = [&](std::int64_t copy, std::int64_t index, std::size_t size) {
    return static_cast<std::int32_t>(copy % copies * static_cast<std::int64_t>(size) + index);
  };
  Workload ring;
  ring.queues = one.queues * static_cast<std::int32_t>(copies);
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (Resource resource : one.resources) {
      resource.rank = static_cast<std::int32_t>(copy);
      ring.resources.push_back(resource);
    }
    std::size_t use_step = 0;
    for (Activity activity : one.activities) {
      if (activity.queue != kNoQueue) {
        activity.queue = at(copy, activity.queue, static_cast<std::size_t>(one.queues));
      }
      for (Use& use : activity.uses) {
        use.resource = at(copy + use_steps[use_step++], use.resource, one.resources.size());
      }
      ring.activities.push_back(std::move(activity));
    }
    for (std::size_t i = 0; i < one.dependencies.size(); ++i) {
      Dependency edge = one.dependencies[i];
      edge.before = at(copy + edge_steps[i], edge.before, one.activities.size());
      edge.after = at(copy, edge.after, one.activities.size());
      ring.dependencies.push_back(edge);
    }
  }
  return ring;
}

}  // namespace harpe
