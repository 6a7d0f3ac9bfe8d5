#include "sim/puts.h"

#include <algorithm>

#include "support/check.h"

namespace harpe {

// A kernel posts signals on the connection of their puts, so that only OneQuiet needs a quiet.
Fence PutQueue::fence_of(const PutOrder& order) const {
  if (options_.poster == Poster::Proxy) return *order.fence;
  if (*order.fence == Fence::PerPut) return Fence::NicOrdered;
  return *order.fence == Fence::PerDestination ? Fence::Batched : *order.fence;
}

RankId PutQueue::batch_of(const PutOrder& order) const {
  return fence_of(order) == Fence::OneQuiet ? RankId() : order.to;
}

// A put that waits for other queues ends a batch, because what it waits for may depend on a signal
// of the batch.
bool PutQueue::joins(const PutOrder& order) const {
  if (open_.empty() || order.waits || !order.fence || fence_of(order) != policy_) return false;
  return open_.contains(batch_of(order));
}

Activity PutQueue::posting(int level) const {
  if (!options_.posts) return {};
  if (options_.poster == Poster::Proxy) return post_activity(machine_, map_, options_.rank, level);
  return kernel_post_activity(machine_, map_, options_.rank, level);
}

PutQueue::Posted PutQueue::post(const PutOrder& order, const PutWriter& writer) {
  if (!options_.counted && !joins(order)) end_batches(writer);
  Pending put{.put = order.put, .to = order.to, .level = order.level, .alone = order.flight.work};
  put.post = writer.add(posting(order.level), options_.queue, ActivityRole::Post, order.put);
  put.flight = fly(order, put.post, writer);
  at_[order.put] = all_.size();
  all_.push_back(put);
  if (order.fence && options_.fences) {
    policy_ = fence_of(order);
    open_[batch_of(order)].push_back(put);
    const bool alone =
        policy_ == Fence::PerPut || policy_ == Fence::NicOrdered || policy_ == Fence::Immediate;
    if (alone) end_batch(order.to, writer);
  }
  return {put.post, put.flight};
}

// The flight of a put: in order on its connection, behind what the NIC holds back, independent of
// everything else.
std::int32_t PutQueue::fly(const PutOrder& order, std::int32_t post, const PutWriter& writer) {
  Activity flight = order.flight;
  const Picoseconds start = flight.start;
  flight.start = {};
  if (options_.poster == Poster::Kernel && posting(order.level).work.value > 0) {
    std::erase_if(flight.uses, [&](const Use& use) {  // the post has used them
      return map_.list[static_cast<std::size_t>(use.resource)].kind == ResourceKind::Sm;
    });
  }
  const std::int32_t flying =
      writer.add(std::move(flight), kNoQueue, ActivityRole::Work, order.put);
  writer.depend(post, flying, start);
  const auto stand_behind = [&](const std::map<RankId, std::int32_t>& those) {
    const auto found = those.find(order.to);
    if (found != those.end()) writer.depend(found->second, flying, {});
  };
  stand_behind(last_to_);
  stand_behind(held_to_);
  if (held_ >= 0) writer.depend(held_, flying, {});
  last_to_[order.to] = flying;
  return flying;
}

void PutQueue::end_batches(const PutWriter& writer) {
  for (const auto& [to, batch] : open_) raise_signals(batch, writer);
  open_.clear();
}

void PutQueue::end_batch(RankId to, const PutWriter& writer) {
  const auto found = open_.find(to);
  if (found == open_.end()) return;
  raise_signals(found->second, writer);
  open_.erase(found);
}

void PutQueue::raise_signals(const Batch& batch, const PutWriter& writer) {
  switch (policy_) {
    case Fence::PerPut:
    case Fence::PerDestination:
    case Fence::OneQuiet:
      quiet(batch, writer);
      break;
    case Fence::NicOrdered:
    case Fence::Batched:
      order_by_nic(batch, writer);
      break;
    case Fence::Immediate:
      for (const Pending& put : batch) count(put, writer);
      break;
  }
}

// The queue's own time for a signal; -1: none.
std::int32_t PutQueue::raise(const Pending& put, const PutWriter& writer) {
  if (!options_.posts || options_.poster == Poster::Kernel) return -1;
  Activity signal = signal_activity(machine_, map_, options_.rank, put.level);
  if (signal.work.value == 0) return -1;
  return writer.add(std::move(signal), options_.queue, ActivityRole::Signal, put.put);
}

void PutQueue::quiet(const Batch& batch, const PutWriter& writer) {
  const Pending& last = batch.back();
  Activity fence;
  if (options_.poster == Poster::Proxy) {
    fence = fence_activity(machine_, map_, options_.rank, last.level);
  }
  const std::int32_t fenced =
      writer.add(std::move(fence), options_.queue, ActivityRole::Fence, last.put);
  const auto outstanding = static_cast<std::int64_t>(batch.size());
  for (const Pending& put : batch) {
    writer.depend(put.flight, fenced,
                  completion_delay(machine_, map_, put.level, outstanding, put.alone));
  }
  for (const Pending& put : batch) {
    const std::int32_t signal = raise(put, writer);
    signal_[put.put] = signal < 0 ? fenced : signal;
  }
}

// What the NIC orders the signals of a batch behind: a delay that later puts also wait for, if the
// machine has one; otherwise -1, and signals directly follow the flights.
std::int32_t PutQueue::hold_back(const Pending& last, const PutWriter& writer) {
  const MachineLevel& level = machine_.levels[static_cast<std::size_t>(last.level)];
  const Picoseconds quiet = nic_drain_delay(machine_, map_, last.level);
  if (quiet.value == 0 && level.nic_fence.value == 0) return -1;
  const std::int32_t order = writer.add({}, kNoQueue, ActivityRole::Order, last.put);
  if (quiet.value > 0) {
    for (; unheld_ < all_.size(); ++unheld_) {
      writer.depend(all_[unheld_].flight, order, quiet);
    }
    if (held_ >= 0) writer.depend(held_, order, {});
    held_ = order;
  } else {
    writer.depend(last.flight, order, level.nic_fence);
    held_to_[last.to] = order;
  }
  return order;
}

void PutQueue::order_by_nic(const Batch& batch, const PutWriter& writer) {
  const Pending last = batch.back();
  const std::int32_t order = hold_back(last, writer);
  for (const Pending& put : batch) {
    const std::int32_t signal = raise(put, writer);
    const std::int32_t behind = order < 0 ? last.flight : order;
    if (signal < 0) {
      signal_[put.put] = order < 0 ? put.flight : order;
      continue;
    }
    // The queue posts the signal, and the NIC releases it. The NIC holds back the batch's first
    // signal.
    const std::int32_t out = writer.add({}, kNoQueue, ActivityRole::Order, put.put);
    writer.depend(signal, out, {});
    writer.depend(behind, out, {});
    signal_[put.put] = out;
    if (order >= 0 && put.put == batch.front().put) writer.depend(signal, order, {});
  }
}

void PutQueue::count(const Pending& put, const PutWriter& writer) {
  Activity counting = count_activity(machine_, map_, put.to, put.level);
  if (counting.work.value == 0 || !options_.posts) {
    signal_[put.put] = put.flight;
    return;
  }
  const std::int32_t counted =
      writer.add(std::move(counting), kNoQueue, ActivityRole::Count, put.put);
  writer.depend(put.flight, counted, {});
  signal_[put.put] = counted;
}

std::int32_t PutQueue::signal_of(std::int32_t put) const {
  const auto found = signal_.find(put);
  return found == signal_.end() ? all_[at_.at(put)].flight : found->second;
}

std::int32_t PutQueue::completed(std::int32_t put, const PutWriter& writer) {
  const std::size_t last = at_.at(put);
  const auto known = joins_.find(last);
  if (known != joins_.end()) return known->second;
  const std::int32_t join = writer.add({}, kNoQueue, ActivityRole::Join, -1);
  std::size_t next = 0;
  const auto later = joins_.lower_bound(last);
  if (later != joins_.begin()) {
    const auto& [place, before] = *std::prev(later);
    writer.depend(before, join, {});
    next = place + 1;
  }
  for (; next <= last; ++next) {
    const Pending& one = all_[next];
    const bool asks = options_.fences && options_.posts;
    writer.depend(one.flight, join,
                  asks ? completion_delay(machine_, map_, one.level, 1, one.alone) : Picoseconds());
  }
  joins_.emplace(last, join);
  return join;
}

}  // namespace harpe
