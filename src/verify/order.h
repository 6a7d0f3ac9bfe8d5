#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/words.h"

namespace harpe::verifier {

// What an edge guarantees to be over for the task that waits, besides what the edge's origin itself
// waited for (commir.md 7.3). All but Completion occur only behind a put.
enum class Covers : std::uint8_t {
  Completion,   // the origin and all tasks before it on its queue
  Queue,        // an event or a barrier behind a put, `fence epoch`: all puts of the queue so far
  Destination,  // `fence dest`, `nic`, `batch`: the put and all earlier ones of its queue to the
                // same rank
  Put,          // `fence put`, `imm`: this put
  Nothing,      // queue order, or a signal without a fence: the put was posted, nothing more
};

// What a signal raised behind a put covers. `same_way`: the rank that the put goes to is the rank
// that waits. A NIC orders only what goes over one connection, so it orders nothing for a signal to
// another rank.
[[nodiscard]] Covers covers_of(Fence fence, bool same_way);

// The happens-before relation (commir.md 10.3): queue order, syncs, barriers, collective groups.
//
// A *unit* is a single task, a barrier, or all members of one collective group. Members of a group
// meet, so everything before any member's start precedes everything after any member's completion.
// A *node* is a task or a barrier (numbered after the tasks); edges connect nodes.
class Order {
 public:
  // Requires: check_ids.
  // Errors: V203 too many strands, V301 the shortest cycle.
  [[nodiscard]] static Checked<Order> make(const Plan& plan, const Words& words);

  std::vector<std::int32_t> sequence;  // all units, in one legal order
  // A *strand* is a sequence of tasks in which a later task known to be over implies that all
  // earlier ones are over: a queue, or the puts of a queue to one rank. If a signal covers a single
  // put, each put is its own strand.
  std::int32_t strands = 0;

  // The tasks of a unit: one task, a group's members, or none (a barrier).
  [[nodiscard]] std::span<const std::int32_t> members(std::int32_t unit) const;
  [[nodiscard]] bool is_group(std::int32_t unit) const { return unit >= first_group_; }
  [[nodiscard]] std::int32_t unit_of(std::int32_t node) const {
    return unit_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] std::int32_t queue_of(std::int32_t task) const {
    return queue_[static_cast<std::size_t>(task)];
  }
  [[nodiscard]] std::int32_t position_of(std::int32_t task) const {  // in its queue, from 0
    return position_[static_cast<std::size_t>(task)];
  }
  [[nodiscard]] std::int32_t task_at(std::int32_t queue, std::int32_t position) const {
    return by_queue_[static_cast<std::size_t>(queue_start_[static_cast<std::size_t>(queue)] +
                                              position)];
  }
  [[nodiscard]] std::int32_t queue_length(std::int32_t queue) const {
    const auto at = static_cast<std::size_t>(queue);
    return queue_start_[at + 1] - queue_start_[at];
  }
  [[nodiscard]] std::int32_t strand_of(std::int32_t task) const {
    return strand_[static_cast<std::size_t>(task)];
  }
  [[nodiscard]] std::int32_t strand_position_of(std::int32_t task) const {  // from 0
    return strand_position_[static_cast<std::size_t>(task)];
  }
  // Searches all tasks, so it is only for findings.
  [[nodiscard]] std::int32_t task_on(std::int32_t strand, std::int32_t position) const;
  [[nodiscard]] bool is_put(std::int32_t task) const {
    return destination_[static_cast<std::size_t>(task)] >= 0;
  }
  [[nodiscard]] std::int32_t destination_of(std::int32_t put) const {
    return destination_[static_cast<std::size_t>(put)];
  }
  // Whether an edge from `put` with this coverage guarantees that `earlier` has arrived: `put`
  // itself or a put before it on its queue.
  [[nodiscard]] bool tells_of(Covers covers, std::int32_t put, std::int32_t earlier) const;
  [[nodiscard]] bool is_task(std::int32_t node) const { return node < tasks_; }
  // Nodes that complete before this one starts, by its own edges only (not its group's).
  [[nodiscard]] std::span<const std::int32_t> before(std::int32_t node) const;
  // What each of those edges covers.
  [[nodiscard]] std::span<const Covers> covers(std::int32_t node) const;
  [[nodiscard]] std::span<const std::int32_t> after(std::int32_t node) const;

 private:
  friend class OrderBuilder;
  std::int32_t tasks_ = 0;
  std::int32_t first_group_ = 0;  // units below this index are nodes
  std::vector<std::int32_t> unit_;
  std::vector<std::int32_t> queue_;
  std::vector<std::int32_t> position_;
  std::vector<std::int32_t> strand_;
  std::vector<std::int32_t> strand_position_;
  std::vector<std::int32_t> destination_;  // per task: the rank a put goes to, or -1
  std::vector<std::int32_t> queue_start_;
  std::vector<std::int32_t> by_queue_;
  std::vector<std::int32_t> before_start_;
  std::vector<std::int32_t> before_;
  std::vector<Covers> covers_;  // parallel to before_
  std::vector<std::int32_t> after_start_;
  std::vector<std::int32_t> after_;
  std::vector<std::int32_t> group_start_;
  std::vector<std::int32_t> group_members_;
  std::vector<std::int32_t> self_;  // 0, 1, …: the members() of single-task units
};

}  // namespace harpe::verifier
