#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::sync {

// Which ranks can reach each other's memory. If a plan has puts by proxy, the first mesh axis
// numbers the nodes, and ranks of different nodes exchange only puts and their signals. Otherwise
// all ranks are on one node.
class Nodes {
 public:
  Nodes() = default;  // all ranks on one node, even if the plan has puts
  explicit Nodes(const Plan& plan);

  // Whether the plan has puts between ranks.
  [[nodiscard]] bool have_network() const { return have_network_; }
  [[nodiscard]] bool are_together(RankId one, RankId other) const {
    return !have_network_ || of_rank_[one.index()] == of_rank_[other.index()];
  }

 private:
  bool have_network_ = false;
  std::vector<std::int64_t> of_rank_;
};

// Whether the task is a put to another rank. A put within a rank is an ordinary copy.
[[nodiscard]] bool goes_out(const Plan& plan, TaskId task);
// All such puts, by ascending id.
[[nodiscard]] std::vector<TaskId> puts_of(const Plan& plan);

// Errors: G090 for any other access to a rank of another node; G091 for a barrier behind a put
// whose waiting task is not an Exit.
[[nodiscard]] Checked<Ok> check_nodes(const Plan& plan, const Nodes& nodes);

}  // namespace harpe::sync
