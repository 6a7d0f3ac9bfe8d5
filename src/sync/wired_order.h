#pragma once

#include <vector>

#include "sync/wiring.h"

namespace harpe::sync {

// What comes behind what, as queues, events and signals have it, in one execution.
class WiredOrder {
 public:
  WiredOrder(const Plan& plan, const Wiring& wiring);

  // By task: whether it begins once the put has landed.
  [[nodiscard]] std::vector<bool> behind_landing(TaskId put) const;
  // By task: whether it is over before the task begins.
  [[nodiscard]] std::vector<bool> before(TaskId task) const;

 private:
  using Edges = std::vector<std::vector<std::size_t>>;
  void add(std::size_t from, std::size_t to);
  // Tasks are nodes by their ids, landings of puts stand behind all of them.
  [[nodiscard]] std::size_t landing_of(TaskId put) const { return tasks_ + put.index(); }
  [[nodiscard]] std::vector<bool> reached(const Edges& edges, std::size_t from) const;

  std::size_t tasks_;
  Edges next_;
  Edges previous_;
};

}  // namespace harpe::sync
