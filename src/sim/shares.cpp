#include "sim/shares.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"

namespace harpe {
namespace {

// Tolerances: for sums of rates in different orders, and for levels that are meant to be equal.
constexpr double kSlack = 1e-9;
constexpr double kEqual = 1e-12;

}  // namespace

Shares::Shares(const Workload& workload) {
  const std::size_t count = workload.activities.size();
  pools_.resize(workload.resources.size());
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    HP_CHECK(workload.resources[i].capacity > 0, "a resource has a capacity");
    pools_[i].capacity = workload.resources[i].capacity;
    pools_[i].kind = workload.resources[i].kind;
  }
  first_.reserve(count + 1);
  for (const Activity& activity : workload.activities) {
    first_.push_back(static_cast<std::int32_t>(uses_.size()));
    for (const Use& use : activity.uses) {
      HP_CHECK(use.rate > 0 && use.resource >= 0 &&
                   static_cast<std::size_t>(use.resource) < pools_.size(),
               "a use has a rate and a resource");
      uses_.push_back(use);
    }
  }
  first_.push_back(static_cast<std::int32_t>(uses_.size()));
  part_.resize(count, Part::All);
  speed_.resize(count, 0);
  bound_.resize(count, -1);
  active_.resize(count, 0);
  joined_.resize(count, 0);
  settled_.resize(count, 0);
}

std::span<const Use> Shares::uses(std::int32_t activity) const {
  const auto begin = static_cast<std::size_t>(at(first_, activity));
  const auto end = static_cast<std::size_t>(at(first_, activity + 1));
  return std::span(uses_).subspan(begin, end - begin);
}

bool Shares::takes(std::int32_t activity, const Use& use) const {
  return at(part_, activity) == Part::All || at(pools_, use.resource).kind == ResourceKind::Sm;
}

void Shares::touch(std::int32_t resource) {
  Pool& pool = at(pools_, resource);
  if (pool.touched) return;
  pool.touched = true;
  touched_.push_back(resource);
}

void Shares::add(std::int32_t activity, Part part) {
  at(part_, activity) = part;
  at(active_, activity) = 1;
  for (const Use& use : uses(activity)) {
    if (!takes(activity, use)) continue;
    at(pools_, use.resource).users.push_back(activity);
    touch(use.resource);
  }
  added_.push_back(activity);
}

void Shares::remove(std::int32_t activity) {
  for (const Use& use : uses(activity)) {
    if (!takes(activity, use)) continue;
    std::vector<std::int32_t>& users = at(pools_, use.resource).users;
    const auto found = std::ranges::find(users, activity);
    HP_CHECK(found != users.end(), "what ends has run");
    *found = users.back();
    users.pop_back();
    touch(use.resource);
  }
  at(active_, activity) = 0;
  at(speed_, activity) = 0;
  at(bound_, activity) = -1;
}

void Shares::join_activity(std::int32_t activity) {
  if (at(joined_, activity) != 0) return;
  at(joined_, activity) = 1;
  at(settled_, activity) = 0;
  part_flows_.push_back(activity);
}

void Shares::join_users(const Pool& pool) {
  for (const std::int32_t user : pool.users) join_activity(user);
}

// Finds the part to compute anew: resources whose demand or users changed, and everything connected
// to them through overfull resources.
void Shares::join_touched() {
  for (const std::int32_t resource : touched_) {
    Pool& pool = at(pools_, resource);
    pool.touched = false;
    double demand = 0;
    for (const std::int32_t user : pool.users) {
      for (const Use& use : uses(user)) {
        if (use.resource == resource) demand += use.rate;
      }
    }
    const bool was = pool.overfull;
    pool.overfull = demand > pool.capacity * (1 + kSlack);
    if (was || pool.overfull) join_users(pool);
  }
  touched_.clear();
  for (const std::int32_t activity : added_) {
    if (at(active_, activity) != 0) join_activity(activity);
  }
  added_.clear();
  for (std::size_t next = 0; next < part_flows_.size(); ++next) {
    for (const Use& use : uses(part_flows_[next])) {
      Pool& pool = at(pools_, use.resource);
      if (!pool.overfull || pool.joined || !takes(part_flows_[next], use)) continue;
      pool.joined = true;
      part_pools_.push_back(use.resource);
      join_users(pool);
    }
  }
}

void Shares::settle_at(std::int32_t activity, double level, std::int32_t use) {
  at(settled_, activity) = 1;
  for (const Use& taken : uses(activity)) {
    Pool& pool = at(pools_, taken.resource);
    if (!pool.joined || !takes(activity, taken)) continue;
    pool.left -= taken.rate * level;
    pool.load -= taken.rate;
    --pool.rising;
  }
  double& speed = at(speed_, activity);
  std::int32_t& bound = at(bound_, activity);
  const bool same = std::abs(level - speed) <= kEqual * speed;
  if (same && bound == use) return;
  if (!same) speed = level;
  bound = use;
  changed_.push_back(activity);
}

void Shares::fill() {
  for (const std::int32_t flow : part_flows_) {
    for (const Use& use : uses(flow)) {
      Pool& pool = at(pools_, use.resource);
      if (!pool.joined || !takes(flow, use)) continue;
      if (pool.rising == 0) {
        pool.left = pool.capacity;
        pool.load = 0;
      }
      pool.load += use.rate;
      ++pool.rising;
    }
  }
  while (true) {
    double level = 1;
    std::int32_t fullest = -1;
    for (const std::int32_t resource : part_pools_) {
      const Pool& pool = at(pools_, resource);
      if (pool.rising == 0) continue;
      const double own = std::max(pool.left, 0.0) / pool.load;
      if (own < level) fullest = resource;
      level = std::min(level, own);
    }
    if (fullest < 0) break;
    for (const std::int32_t resource : part_pools_) {
      const Pool& pool = at(pools_, resource);
      // The fullest resource always counts as full: for subnormal rates the product may miss the
      // quotient.
      const bool is_full = resource == fullest || pool.left <= pool.load * level * (1 + kEqual);
      if (pool.rising == 0 || !is_full) continue;
      for (const std::int32_t user : pool.users) {
        if (at(settled_, user) != 0) continue;
        std::int32_t use = at(first_, user);
        while (at(uses_, use).resource != resource) ++use;
        settle_at(user, level, use);
      }
    }
  }
  for (const std::int32_t flow : part_flows_) {
    if (at(settled_, flow) == 0) settle_at(flow, 1, -1);
  }
}

std::span<const std::int32_t> Shares::settle() {
  changed_.clear();
  join_touched();
  fill();
  for (const std::int32_t flow : part_flows_) at(joined_, flow) = 0;
  for (const std::int32_t resource : part_pools_) at(pools_, resource).joined = false;
  part_flows_.clear();
  part_pools_.clear();
  return changed_;
}

}  // namespace harpe
