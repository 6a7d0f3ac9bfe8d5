#include "sim/tiles.h"

#include <algorithm>

namespace harpe {
namespace {

class Tiler {
 public:
  Tiler(const BuiltWorkload& from, std::int64_t parts) : from_(from), parts_(parts) {}

  BuiltWorkload run() {
    out_.map = from_.map;
    out_.level_bytes = from_.level_bytes;
    out_.workload.resources = from_.workload.resources;
    out_.workload.queues = from_.workload.queues;
    for (std::size_t i = 0; i < from_.workload.activities.size(); ++i) cut(i);
    first_.push_back(static_cast<std::int32_t>(out_.of.size()));
    sources_.resize(from_.of.size());
    for (const Dependency& edge : from_.workload.dependencies) {
      if (edge.kind == WaitKind::Member) ++sources_[static_cast<std::size_t>(edge.after)].count;
    }
    for (const Dependency& edge : from_.workload.dependencies) connect(edge);
    for (const std::int32_t first : from_.first_of_task) {
      out_.first_of_task.push_back(first_part(first));
    }
    for (const std::int32_t begin : from_.begin_of_task) {
      out_.begin_of_task.push_back(first_part(begin));
    }
    for (const std::int32_t work : from_.work_of_task) out_.work_of_task.push_back(last_part(work));
    return std::move(out_);
  }

 private:
  // The other members that a collective's member waits for.
  struct Sources {
    std::int64_t count = 0;
    std::int64_t seen = 0;
  };

  [[nodiscard]] std::int32_t first_part(std::int32_t i) const {
    return first_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int32_t last_part(std::int32_t i) const {
    return first_[static_cast<std::size_t>(i) + 1] - 1;
  }

  void cut(std::size_t i) {
    const Activity& whole = from_.workload.activities[i];
    first_.push_back(static_cast<std::int32_t>(out_.of.size()));
    const std::int64_t work = whole.work.value;
    const bool arrives = from_.of[i].role == ActivityRole::Arrive;  // one tile after the other
    const std::int64_t parts = work < parts_ && !arrives ? 1 : parts_;
    for (std::int64_t part = 0; part < parts; ++part) {
      Activity activity = whole;
      activity.work = Picoseconds(work / parts * (part + 1) + work % parts * (part + 1) / parts -
                                  work / parts * part - work % parts * part / parts);
      const auto index = static_cast<std::int32_t>(out_.of.size());
      if (part > 0) {
        activity.start = {};
        if (whole.queue == kNoQueue) join(index - 1, index, WaitKind::Queue, {});
      }
      out_.workload.activities.push_back(std::move(activity));
      out_.of.push_back(from_.of[i]);
    }
  }

  void join(std::int32_t before, std::int32_t after, WaitKind kind, Picoseconds delay) {
    out_.workload.dependencies.push_back({before, after, kind, delay});
  }

  void connect(const Dependency& edge) {
    const std::int32_t first = first_part(edge.after);
    const std::int32_t parts = last_part(edge.after) - first + 1;
    if (edge.kind == WaitKind::Member) {
      connect_source(edge, first, parts);
      return;
    }
    if (parts == 1 || last_part(edge.before) == first_part(edge.before)) {
      join(last_part(edge.before), first, edge.kind, edge.delay);
      return;
    }
    for (std::int32_t part = 0; part < parts; ++part) {
      join(first_part(edge.before) + part, first + part, edge.kind, edge.delay);
    }
  }

  // Connects the parts that need this source; each waits for the matching part of the source.
  void connect_source(const Dependency& edge, std::int32_t first, std::int32_t parts) {
    Sources& sources = sources_[static_cast<std::size_t>(edge.after)];
    const std::int64_t seen = sources.seen++;
    const std::int64_t begin = seen * parts / sources.count;
    const std::int64_t end = std::max(begin + 1, (seen + 1) * parts / sources.count);
    for (std::int64_t part = begin; part < end; ++part) {
      const auto at = static_cast<std::int32_t>(part);
      join(parts == 1 ? last_part(edge.before) : first_part(edge.before) + at, first + at,
           edge.kind, edge.delay);
    }
  }

  const BuiltWorkload& from_;
  std::int64_t parts_;
  BuiltWorkload out_;
  std::vector<std::int32_t> first_;  // per activity, and the end
  std::vector<Sources> sources_;
};

}  // namespace

BuiltWorkload in_tiles(const BuiltWorkload& built, std::int64_t parts) {
  return Tiler(built, parts).run();
}

std::int64_t tiles_for(const BuiltWorkload& built) {
  constexpr std::int64_t kMost = 16;
  constexpr std::int64_t kActivities = 400'000;
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, built.of.size()));
  return std::clamp<std::int64_t>(kActivities / count, 2, kMost);
}

}  // namespace harpe
