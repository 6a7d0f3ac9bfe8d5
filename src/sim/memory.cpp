#include "sim/memory.h"

#include <algorithm>
#include <map>

namespace harpe {
namespace {

struct Lifetime {
  Picoseconds first;
  Picoseconds last;
  bool touched = false;
};

std::vector<Lifetime> uses_of(const Plan& plan, const std::vector<Span>& tasks) {
  std::vector<Lifetime> uses(plan.allocs.size());
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    // Entries and exits name all allocations of their rank, whether they are used or not.
    if (task.kind == TaskKind::Entry || task.kind == TaskKind::Exit) continue;
    const auto touch = [&](const Ref& ref) {
      Lifetime& use = uses[ref.alloc.index()];
      use.first = use.touched ? std::min(use.first, tasks[i].begin) : tasks[i].begin;
      use.last = std::max(use.last, tasks[i].end);
      use.touched = true;
    };
    for (const Ref& ref : task.reads) touch(ref);
    for (const Ref& ref : task.writes) touch(ref);
  }
  return uses;
}

}  // namespace

std::vector<MemoryPoint> memory_over_time(const Plan& plan, const std::vector<Span>& tasks) {
  const std::vector<Lifetime> uses = uses_of(plan, tasks);
  const auto ranks = static_cast<std::size_t>(plan.mesh.ranks());
  std::vector<std::map<Picoseconds, std::int64_t>> changes(ranks);  // per rank, by time
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Alloc& alloc = plan.allocs[i];
    std::map<Picoseconds, std::int64_t>& own = changes[alloc.rank.index()];
    if (alloc.level == Level::Home) {
      own[Picoseconds()] += alloc.bytes;
    } else if (uses[i].touched) {
      own[uses[i].first] += alloc.bytes;
      own[uses[i].last] -= alloc.bytes;
    }
  }
  std::vector<MemoryPoint> fullest;
  std::int64_t most = -1;
  for (const std::map<Picoseconds, std::int64_t>& own : changes) {
    std::vector<MemoryPoint> points;
    std::int64_t bytes = 0;
    std::int64_t peak = 0;
    for (const auto& [time, change] : own) {
      bytes += change;
      peak = std::max(peak, bytes);
      if (change != 0) points.push_back({time, bytes});
    }
    if (peak <= most) continue;
    most = peak;
    fullest = std::move(points);
  }
  return fullest;
}

}  // namespace harpe
