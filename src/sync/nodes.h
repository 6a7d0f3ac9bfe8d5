#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::sync {

// Which ranks reach each other's memory. Where a plan puts anything through a proxy, the first axis
// of its mesh says which node a rank is on, and nodes are joined by puts and signals about them
// alone; else all ranks are on one.
class Nodes {
 public:
  Nodes() = default;  // all ranks on one, whatever puts there are
  explicit Nodes(const Plan& plan);

  // Whether puts join them.
  [[nodiscard]] bool have_network() const { return have_network_; }
  [[nodiscard]] bool are_together(RankId one, RankId other) const {
    return !have_network_ || of_rank_[one.index()] == of_rank_[other.index()];
  }

 private:
  bool have_network_ = false;
  std::vector<std::int64_t> of_rank_;
};

// A put to another rank. One within a rank is a copy like others.
[[nodiscard]] bool goes_out(const Plan& plan, TaskId task);
// All of them, in the order of their ids.
[[nodiscard]] std::vector<TaskId> puts_of(const Plan& plan);

// Errors: G090 what else crosses nodes, G091 a barrier behind a put that is no end.
[[nodiscard]] Checked<Ok> check_nodes(const Plan& plan, const Nodes& nodes);

}  // namespace harpe::sync
