#pragma once

#include <vector>

#include "sync/wiring.h"

namespace harpe::sync {

// The order of tasks within one execution that queues, events and signals enforce.
class WiredOrder {
 public:
  WiredOrder(const Plan& plan, const Wiring& wiring);

  // By task: whether it starts after the put has landed.
  [[nodiscard]] std::vector<bool> behind_landing(TaskId put) const;
  // By task: whether it ends before `task` starts.
  [[nodiscard]] std::vector<bool> before(TaskId task) const;

 private:
  using Edges = std::vector<std::vector<std::size_t>>;
  void add(std::size_t from, std::size_t to);
  // Nodes 0 to tasks_ - 1 are tasks; landings of puts follow.
  [[nodiscard]] std::size_t landing_of(TaskId put) const { return tasks_ + put.index(); }
  [[nodiscard]] std::vector<bool> reached(const Edges& edges, std::size_t from) const;

  std::size_t tasks_;
  Edges next_;
  Edges previous_;
};

}  // namespace harpe::sync
