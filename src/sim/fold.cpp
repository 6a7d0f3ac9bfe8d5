#include "sim/fold.h"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>

#include "support/check.h"
#include "support/rng.h"

namespace harpe {
namespace {

using Colour = std::uint64_t;

Colour mix(Colour seed, Colour value) { return mix_bits(seed * kStreamStep + value); }
Colour mix(Colour seed, double value) { return mix(seed, std::bit_cast<Colour>(value)); }
Colour mix(Colour seed, Picoseconds value) { return mix(seed, static_cast<Colour>(value.value)); }

// Dependencies, including those between neighbours in a queue, by the waiting activity.
struct Waits {
  std::vector<std::int32_t> first;  // per activity, and the end
  std::vector<Dependency> all;

  [[nodiscard]] std::span<const Dependency> of(std::int32_t activity) const {
    const auto begin = static_cast<std::size_t>(first[static_cast<std::size_t>(activity)]);
    const auto end = static_cast<std::size_t>(first[static_cast<std::size_t>(activity) + 1]);
    return std::span(all).subspan(begin, end - begin);
  }
};

Waits waits_of(const Workload& workload) {
  std::vector<Dependency> edges = workload.dependencies;
  std::vector<std::int32_t> last(static_cast<std::size_t>(workload.queues), -1);
  for (std::size_t i = 0; i < workload.activities.size(); ++i) {
    const std::int32_t queue = workload.activities[i].queue;
    if (queue == kNoQueue) continue;
    const auto here = static_cast<std::int32_t>(i);
    std::int32_t& before = last[static_cast<std::size_t>(queue)];
    if (before >= 0) edges.push_back({before, here, WaitKind::Queue, {}});
    before = here;
  }
  Waits waits;
  waits.first.resize(workload.activities.size() + 1);
  for (const Dependency& edge : edges) ++waits.first[static_cast<std::size_t>(edge.after) + 1];
  for (std::size_t i = 1; i < waits.first.size(); ++i) waits.first[i] += waits.first[i - 1];
  waits.all.resize(edges.size());
  std::vector<std::int32_t> next(waits.first.begin(), waits.first.end() - 1);
  for (const Dependency& edge : edges) {
    waits.all[static_cast<std::size_t>(next[static_cast<std::size_t>(edge.after)]++)] = edge;
  }
  return waits;
}

// All activities, each behind everything that it waits for.
std::vector<std::int32_t> sorted(const Waits& waits) {
  const std::size_t count = waits.first.size() - 1;
  std::vector<std::int32_t> pending(count);
  std::vector<std::int32_t> first(count + 1);
  for (const Dependency& edge : waits.all) ++first[static_cast<std::size_t>(edge.before) + 1];
  for (std::size_t i = 1; i <= count; ++i) first[i] += first[i - 1];
  std::vector<std::int32_t> after(waits.all.size());
  std::vector<std::int32_t> next(first.begin(), first.end() - 1);
  for (const Dependency& edge : waits.all) {
    after[static_cast<std::size_t>(next[static_cast<std::size_t>(edge.before)]++)] = edge.after;
    ++pending[static_cast<std::size_t>(edge.after)];
  }
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < count; ++i) {
    if (pending[i] == 0) order.push_back(static_cast<std::int32_t>(i));
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto here = static_cast<std::size_t>(order[at]);
    for (std::int32_t k = first[here]; k < first[here + 1]; ++k) {
      const std::int32_t waiting = after[static_cast<std::size_t>(k)];
      if (--pending[static_cast<std::size_t>(waiting)] == 0) order.push_back(waiting);
    }
  }
  HP_CHECK(order.size() == count, "activities wait for each other");
  return order;
}

// Numbers the colours in the order of their first appearance.
std::vector<std::int32_t> numbered(const std::vector<Colour>& colours, std::int32_t& classes) {
  std::unordered_map<Colour, std::int32_t> numbers;
  numbers.reserve(colours.size());
  std::vector<std::int32_t> of;
  of.reserve(colours.size());
  for (const Colour colour : colours) {
    of.push_back(
        numbers.try_emplace(colour, static_cast<std::int32_t>(numbers.size())).first->second);
  }
  classes = static_cast<std::int32_t>(numbers.size());
  return of;
}

// Refines classes until they are stable. Sums of mixed colours represent multisets: equal multisets
// have equal sums, and others have different sums except with a probability of about 1 in 2^64.
class Refinement {
 public:
  Refinement(const Workload& workload, const Waits& waits)
      : workload_(workload), waits_(waits), order_(sorted(waits)) {
    for (const Activity& activity : workload.activities) {
      Colour colour = mix(mix(1, activity.start), activity.work);
      activities_.push_back(mix(colour, static_cast<Colour>(activity.resident ? 1 : 0)));
    }
    for (const Resource& resource : workload.resources) {
      const Colour colour =
          mix(mix(2, static_cast<Colour>(resource.kind)), static_cast<Colour>(resource.level));
      resources_.push_back(mix(colour, resource.capacity));
    }
  }

  // False as soon as there are more than `most` classes of activities, or the time limit is over.
  bool refine(std::int32_t most, const TimeLimit& limit) {
    std::int32_t known = 0;
    while (true) {
      if (limit.is_over()) return false;
      colour_activities();
      class_of = numbered(activities_, classes);
      if (classes > most) return false;
      colour_resources();
      std::int32_t pools = 0;
      resource_class = numbered(resources_, pools);
      if (classes + pools == known) return true;
      known = classes + pools;
    }
  }

  std::vector<std::int32_t> class_of;
  std::vector<std::int32_t> resource_class;
  std::int32_t classes = 0;

 private:
  void colour_activities() {
    for (const std::int32_t i : order_) {
      Colour waits = 0;
      for (const Dependency& edge : waits_.of(i)) {
        const Colour before = activities_[static_cast<std::size_t>(edge.before)];
        waits += mix(mix(before, static_cast<Colour>(edge.kind)), edge.delay);
      }
      Colour uses = 0;
      for (const Use& use : workload_.activities[static_cast<std::size_t>(i)].uses) {
        uses += mix(resources_[static_cast<std::size_t>(use.resource)], use.rate);
      }
      Colour& own = activities_[static_cast<std::size_t>(i)];
      own = mix(mix(own, waits), uses);
    }
  }

  void colour_resources() {
    std::vector<Colour> users(resources_.size(), 0);
    for (std::size_t i = 0; i < activities_.size(); ++i) {
      for (const Use& use : workload_.activities[i].uses) {
        users[static_cast<std::size_t>(use.resource)] += mix(activities_[i], use.rate);
      }
    }
    for (std::size_t i = 0; i < users.size(); ++i) resources_[i] = mix(resources_[i], users[i]);
  }

  const Workload& workload_;
  const Waits& waits_;
  std::vector<std::int32_t> order_;
  std::vector<Colour> activities_;
  std::vector<Colour> resources_;
};

std::vector<std::int32_t> first_of_each(const std::vector<std::int32_t>& of) {
  std::vector<std::int32_t> first;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (static_cast<std::size_t>(of[i]) == first.size()) {
      first.push_back(static_cast<std::int32_t>(i));
    }
  }
  return first;
}

Workload quotient_of(const Workload& workload, const Waits& waits, const Quotient& quotient) {
  Workload out;
  const std::vector<std::int32_t> pools = first_of_each(quotient.resource_class);
  for (const std::int32_t pool : pools) {
    out.resources.push_back(workload.resources[static_cast<std::size_t>(pool)]);
  }
  for (std::size_t one = 0; one < quotient.representative.size(); ++one) {
    const std::int32_t i = quotient.representative[one];
    Activity activity = workload.activities[static_cast<std::size_t>(i)];
    activity.queue = kNoQueue;  // queues have become dependencies
    activity.uses.clear();
    out.activities.push_back(std::move(activity));
    for (const Dependency& edge : waits.of(i)) {
      const std::int32_t before = quotient.class_of[static_cast<std::size_t>(edge.before)];
      out.dependencies.push_back({before, static_cast<std::int32_t>(one), edge.kind, edge.delay});
    }
  }
  // A representative uses what its whole class uses of the first resource of another class.
  for (std::size_t i = 0; i < workload.activities.size(); ++i) {
    Activity& activity = out.activities[static_cast<std::size_t>(quotient.class_of[i])];
    for (const Use& use : workload.activities[i].uses) {
      const std::int32_t pool = quotient.resource_class[static_cast<std::size_t>(use.resource)];
      if (pools[static_cast<std::size_t>(pool)] != use.resource) continue;
      const auto found = std::ranges::find(activity.uses, pool, &Use::resource);
      if (found != activity.uses.end()) {
        found->rate += use.rate;
      } else {
        activity.uses.push_back({pool, use.rate});
      }
    }
  }
  return out;
}

// The dependency of the activity whose class is the cause of its representative's readiness.
std::int32_t cause_of(const Waits& waits, const Quotient& quotient, std::int32_t activity,
                      const Span& folded) {
  if (folded.cause < 0) return -1;
  for (const Dependency& edge : waits.of(activity)) {
    const std::int32_t before = quotient.class_of[static_cast<std::size_t>(edge.before)];
    if (before == folded.cause && edge.kind == folded.kind) return edge.before;
  }
  HP_CHECK(false, "activities of one class wait for the same");
}

}  // namespace

std::optional<Quotient> fold(const Workload& workload, const TimeLimit& limit) {
  if (!workload.servers.empty()) return std::nullopt;
  const Waits waits = waits_of(workload);
  Refinement refinement(workload, waits);
  const auto most = static_cast<std::int32_t>(workload.activities.size() / 2);
  if (!refinement.refine(most, limit)) return std::nullopt;
  Quotient quotient;
  quotient.class_of = std::move(refinement.class_of);
  quotient.resource_class = std::move(refinement.resource_class);
  quotient.representative = first_of_each(quotient.class_of);
  quotient.workload = quotient_of(workload, waits, quotient);
  return quotient;
}

EngineRun unfold(const Workload& workload, const Quotient& quotient, const EngineRun& folded) {
  const Waits waits = waits_of(workload);
  EngineRun run{.total = folded.total, .spans = {}, .units = {}};
  run.spans.reserve(workload.activities.size());
  for (std::size_t i = 0; i < workload.activities.size(); ++i) {
    Span span = folded.spans[static_cast<std::size_t>(quotient.class_of[i])];
    span.cause = cause_of(waits, quotient, static_cast<std::int32_t>(i), span);
    if (span.bound >= 0) {
      for (const Use& use : workload.activities[i].uses) {
        if (quotient.resource_class[static_cast<std::size_t>(use.resource)] != span.bound) continue;
        span.bound = use.resource;
        break;
      }
    }
    run.spans.push_back(span);
  }
  for (const std::int32_t pool : quotient.resource_class) {
    run.units.push_back(folded.units[static_cast<std::size_t>(pool)]);
  }
  return run;
}

}  // namespace harpe
