#include "verify/fences.h"

#include <vector>

namespace harpe::verifier {
namespace {

// Describes a signal that was raised behind `put` but does not cover it.
std::string describe(const Plan& plan, const Words& words, const Order& order, std::int32_t put,
                     std::size_t id) {
  const Sync& sync = plan.syncs[id];
  const std::string signal = "sync " + std::to_string(id) + " from " + words.task(sync.from);
  if (!sync.fence) return signal + " has no fence";
  const std::string policy = " has `fence " + std::string(print(*sync.fence)) + "`";
  const bool alone = *sync.fence == Fence::PerPut || *sync.fence == Fence::Immediate;
  if (alone && sync.from.value != put) return signal + policy + ", which covers that put alone";
  const std::string own = std::to_string(order.destination_of(sync.from.value));
  if (order.destination_of(put) != order.destination_of(sync.from.value)) {
    return signal + policy + ", which covers puts to rank " + own + ", and this one goes to rank " +
           std::to_string(order.destination_of(put));
  }
  return signal + policy + ", which covers puts to the rank that waits, and " +
         words.task(sync.to) + " waits for a put to rank " + own;
}

// `epoch` covers everything earlier, so at least one policy always covers the put.
std::string list_covering(const Words& words, const Order& order, std::int32_t put,
                          const Sync& sync) {
  const std::int32_t from = sync.from.value;
  const bool same_way = order.destination_of(from) == words.rank_of(sync.to.value).value;
  std::vector<Fence> covering;
  for (const Fence fence : {Fence::PerPut, Fence::PerDestination, Fence::NicOrdered, Fence::Batched,
                            Fence::OneQuiet, Fence::Immediate}) {
    if (order.tells_of(covers_of(fence, same_way), from, put)) covering.push_back(fence);
  }
  std::string text = "`fence ";
  for (std::size_t i = 0; i < covering.size(); ++i) {
    if (i > 0) text += i + 1 == covering.size() ? " or `" : ", `";
    text += std::string(print(covering[i])) + "`";
  }
  return text;
}

}  // namespace

Checked<Ok> check_fences(const Plan& plan, const Words& words) {
  for (std::size_t id = 0; id < plan.syncs.size(); ++id) {
    const Sync& sync = plan.syncs[id];
    if (!sync.fence) continue;
    const bool behind_put = is_put(plan, plan.tasks[sync.from.index()]);
    if (behind_put && sync.kind != SyncKind::Event) continue;
    return make_diag(DiagCode::V541,
                     {{"id", id},
                      {"from", words.task(sync.from)},
                      {"to", words.task(sync.to)},
                      {"problem", behind_put ? "and is an event" : "and the task is no put"}});
  }
  return Ok{};
}

std::optional<std::string> why_uncovered(const Plan& plan, const Words& words, const Order& order,
                                         std::int32_t put, std::int32_t task) {
  const std::size_t nodes = plan.tasks.size() + plan.barriers.size();
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  // Per node: a signal behind the put that the node waits for, directly or not.
  std::vector<std::size_t> signal(nodes, kNone);
  for (std::size_t id = 0; id < plan.syncs.size(); ++id) {
    const std::int32_t from = plan.syncs[id].from.value;
    const bool behind = order.is_put(from) && order.queue_of(from) == order.queue_of(put) &&
                        order.position_of(from) >= order.position_of(put);
    if (behind) signal[plan.syncs[id].to.index()] = id;
  }
  std::vector<bool> seen(nodes, false);
  std::vector<std::int32_t> found = {task};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const auto node = static_cast<std::size_t>(found[next]);
    if (const std::size_t id = signal[node]; id != kNone) {
      return describe(plan, words, order, put, id) + ", and " +
             list_covering(words, order, put, plan.syncs[id]) + " would cover it";
    }
    for (const std::int32_t before : order.before(found[next])) {
      if (seen[static_cast<std::size_t>(before)]) continue;
      seen[static_cast<std::size_t>(before)] = true;
      found.push_back(before);
    }
  }
  return std::nullopt;
}

}  // namespace harpe::verifier
