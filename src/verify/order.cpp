#include "verify/order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "verify/cycle.h"

namespace harpe::verifier {
namespace {

constexpr std::int32_t kMaxStrands = 1 << 20;

template <class Item>
std::span<const Item> row(const std::vector<std::int32_t>& start, const std::vector<Item>& items,
                          std::int32_t index) {
  const auto i = static_cast<std::size_t>(index);
  return std::span(items).subspan(static_cast<std::size_t>(start[i]),
                                  static_cast<std::size_t>(start[i + 1] - start[i]));
}

}  // namespace

Covers covers_of(Fence fence, bool same_way) {
  switch (fence) {
    case Fence::PerPut:
      return Covers::Put;
    case Fence::PerDestination:
      return Covers::Destination;
    case Fence::NicOrdered:
    case Fence::Batched:
      return same_way ? Covers::Destination : Covers::Nothing;
    case Fence::OneQuiet:
      return Covers::Queue;
    case Fence::Immediate:
      return same_way ? Covers::Put : Covers::Nothing;
  }
  return Covers::Nothing;
}

class OrderBuilder {
 public:
  OrderBuilder(const Plan& plan, Order& out) : plan_(plan), out_(out) {}

  void number_tasks() {
    const auto tasks = static_cast<std::int32_t>(plan_.tasks.size());
    out_.tasks_ = tasks;
    std::vector<std::int32_t> length(plan_.queues.size(), 0);
    for (const Task& task : plan_.tasks) {
      out_.queue_.push_back(task.queue.value);
      out_.position_.push_back(length[task.queue.index()]++);
    }
    out_.queue_start_.push_back(0);
    for (const std::int32_t count : length) {
      out_.queue_start_.push_back(out_.queue_start_.back() + count);
    }
    out_.by_queue_.resize(plan_.tasks.size());
    for (std::int32_t task = 0; task < tasks; ++task) {
      const auto at = static_cast<std::size_t>(task);
      const auto queue = static_cast<std::size_t>(out_.queue_[at]);
      out_.by_queue_[static_cast<std::size_t>(out_.queue_start_[queue] + out_.position_[at])] =
          task;
    }
  }

  // Requires: number_tasks.
  void number_strands() {
    std::vector<bool> singly(plan_.queues.size(),
                             false);  // some signal covers one put of the queue
    for (const Task& task : plan_.tasks) {
      const bool puts = is_put(plan_, task) && !task.writes.empty();
      out_.destination_.push_back(puts ? harpe::destination_of(plan_, task).value : -1);
    }
    for (const Sync& sync : plan_.syncs) {
      const bool one = sync.kind != SyncKind::Event &&
                       (sync.fence == Fence::PerPut || sync.fence == Fence::Immediate);
      if (one && out_.is_put(sync.from.value)) singly[queue_of(sync.from)] = true;
    }
    // A queue's strand has the queue's number. Strands of puts to one rank are adjacent, because
    // that rank is the first to know that they are over; so rows share more pages.
    using Strand = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // to, queue, put or -1
    std::vector<Strand> strands;
    const auto strand_of = [&](std::int32_t put) {
      const std::int32_t queue = out_.queue_of(put);
      return Strand(out_.destination_of(put), queue,
                    singly[static_cast<std::size_t>(queue)] ? put : -1);
    };
    for (std::int32_t task = 0; task < out_.tasks_; ++task) {
      if (out_.is_put(task)) strands.push_back(strand_of(task));
    }
    std::ranges::sort(strands);
    strands.erase(std::ranges::unique(strands).begin(), strands.end());
    const auto queues = static_cast<std::int32_t>(plan_.queues.size());
    out_.strands = queues + static_cast<std::int32_t>(strands.size());
    std::vector<std::int32_t> length(static_cast<std::size_t>(out_.strands), 0);
    for (std::int32_t task = 0; task < out_.tasks_; ++task) {
      std::int32_t strand = out_.queue_of(task);
      if (out_.is_put(task)) {
        const auto own = std::ranges::lower_bound(strands, strand_of(task));
        strand = queues + static_cast<std::int32_t>(own - strands.begin());
      }
      out_.strand_.push_back(strand);
      out_.strand_position_.push_back(length[static_cast<std::size_t>(strand)]++);
    }
  }

  void number_units() {
    const std::size_t nodes = plan_.tasks.size() + plan_.barriers.size();
    out_.first_group_ = static_cast<std::int32_t>(nodes);
    out_.unit_.resize(nodes);
    std::iota(out_.unit_.begin(), out_.unit_.end(), 0);
    out_.self_ = out_.unit_;
    std::map<std::int32_t, std::vector<std::int32_t>> groups;
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
      if (plan_.tasks[task].kind != TaskKind::Collective) continue;
      groups[plan_.tasks[task].group].push_back(static_cast<std::int32_t>(task));
    }
    out_.group_start_.push_back(0);
    std::int32_t unit = out_.first_group_;
    for (const auto& [group, members] : groups) {
      for (const std::int32_t task : members) {
        out_.unit_[static_cast<std::size_t>(task)] = unit;
        out_.group_members_.push_back(task);
      }
      out_.group_start_.push_back(static_cast<std::int32_t>(out_.group_members_.size()));
      ++unit;
    }
  }

  void add_edges() {
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
      const std::int32_t position = out_.position_[task];
      if (position > 0) {
        const std::int32_t previous = out_.task_at(out_.queue_[task], position - 1);
        add(previous, static_cast<std::int32_t>(task),
            out_.is_put(previous) ? Covers::Nothing : Covers::Completion);
      }
    }
    for (const Sync& sync : plan_.syncs) add(sync.from.value, sync.to.value, covers_of(sync));
    for (std::size_t id = 0; id < plan_.barriers.size(); ++id) {
      const auto node = static_cast<std::int32_t>(plan_.tasks.size() + id);
      for (const TaskId from : plan_.barriers[id].from) {
        add(from.value, node, out_.is_put(from.value) ? Covers::Queue : Covers::Completion);
      }
      for (const TaskId to : plan_.barriers[id].to) add(node, to.value, Covers::Completion);
    }
    bucket(to_, from_, out_.before_start_, out_.before_);
    bucket(to_, covers_, out_.before_start_, out_.covers_);
    bucket(from_, to_, out_.after_start_, out_.after_);
  }

  // Kahn's algorithm over units. Returns the number of unreleased edges into each unit: all zero
  // unless there is a cycle.
  std::vector<std::int32_t> sort_units() {
    const std::size_t units =
        static_cast<std::size_t>(out_.first_group_) + out_.group_start_.size() - 1;
    std::vector<std::int32_t> left(units, 0);
    for (const std::int32_t node : to_) ++left[static_cast<std::size_t>(out_.unit_of(node))];
    for (std::int32_t unit = 0; unit < static_cast<std::int32_t>(units); ++unit) {
      // A group member is not a unit.
      const bool exists = out_.is_group(unit) || out_.unit_of(unit) == unit;
      if (exists && left[static_cast<std::size_t>(unit)] == 0) out_.sequence.push_back(unit);
    }
    for (std::size_t next = 0; next < out_.sequence.size(); ++next) {
      for (const std::int32_t node : nodes_of(out_.sequence[next])) {
        for (const std::int32_t later : out_.after(node)) {
          const std::int32_t unit = out_.unit_of(later);
          if (--left[static_cast<std::size_t>(unit)] == 0) out_.sequence.push_back(unit);
        }
      }
    }
    return left;
  }

 private:
  [[nodiscard]] std::span<const std::int32_t> nodes_of(std::int32_t unit) const {
    if (out_.is_group(unit)) return out_.members(unit);
    return std::span(out_.self_).subspan(static_cast<std::size_t>(unit), 1);
  }

  [[nodiscard]] std::size_t queue_of(TaskId task) const {
    return plan_.tasks[task.index()].queue.index();
  }

  [[nodiscard]] Covers covers_of(const Sync& sync) const {
    if (!out_.is_put(sync.from.value)) return Covers::Completion;
    if (sync.kind == SyncKind::Event) return Covers::Queue;
    if (!sync.fence) return Covers::Nothing;
    const std::int32_t waiting = plan_.queues[queue_of(sync.to)].rank.value;
    return verifier::covers_of(*sync.fence, waiting == out_.destination_of(sync.from.value));
  }

  void add(std::int32_t from, std::int32_t to, Covers covers) {
    from_.push_back(from);
    to_.push_back(to);
    covers_.push_back(covers);
  }

  // Groups the values of edges by key.
  template <class Value>
  void bucket(const std::vector<std::int32_t>& keys, const std::vector<Value>& values,
              std::vector<std::int32_t>& start, std::vector<Value>& items) const {
    start.assign(out_.unit_.size() + 1, 0);
    for (const std::int32_t key : keys) ++start[static_cast<std::size_t>(key) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<std::int32_t> next(start.begin(), start.end() - 1);
    items.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      items[static_cast<std::size_t>(next[static_cast<std::size_t>(keys[i])]++)] = values[i];
    }
  }

  const Plan& plan_;
  Order& out_;
  std::vector<std::int32_t> from_;
  std::vector<std::int32_t> to_;
  std::vector<Covers> covers_;
};

std::span<const std::int32_t> Order::members(std::int32_t unit) const {
  if (is_group(unit)) return row(group_start_, group_members_, unit - first_group_);
  return std::span(self_).subspan(static_cast<std::size_t>(unit), is_task(unit) ? 1 : 0);
}

std::int32_t Order::task_on(std::int32_t strand, std::int32_t position) const {
  std::int32_t task = 0;
  while (strand_of(task) != strand || strand_position_of(task) != position) ++task;
  return task;
}

bool Order::tells_of(Covers covers, std::int32_t put, std::int32_t earlier) const {
  if (covers == Covers::Queue) return true;
  if (covers == Covers::Destination) return destination_of(earlier) == destination_of(put);
  return covers == Covers::Put && earlier == put;
}

std::span<const std::int32_t> Order::before(std::int32_t node) const {
  return row(before_start_, before_, node);
}

std::span<const Covers> Order::covers(std::int32_t node) const {
  return row(before_start_, covers_, node);
}

std::span<const std::int32_t> Order::after(std::int32_t node) const {
  return row(after_start_, after_, node);
}

Checked<Order> Order::make(const Plan& plan, const Words& words) {
  Order order;
  OrderBuilder builder(plan, order);
  builder.number_tasks();
  builder.number_strands();
  if (order.strands > kMaxStrands) {
    return make_diag(DiagCode::V203,
                     {{"what", "the puts that are signalled one by one"}, {"limit", kMaxStrands}});
  }
  builder.number_units();
  builder.add_edges();
  const std::vector<std::int32_t> left = builder.sort_units();
  if (std::ranges::any_of(left, [](std::int32_t edges) { return edges > 0; })) {
    return describe_cycle(plan, words, order, left);
  }
  return order;
}

}  // namespace harpe::verifier
