#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"
#include "plan/ref_bytes.h"

namespace harpe {

// What a compute task works through. A product has `batch` problems of rows x columns x depth;
// attention `batch` heads of rows queries, columns keys and head dimension depth; other leaves have
// rows alone, as many as points. Boxes beside each other count as more batch.
struct TaskWork {
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
  double flops = 0;     // of pairs under a mask only those that are seen
  bool masked = false;  // some are not
  friend bool operator==(const TaskWork&, const TaskWork&) = default;
};

// The work of a plan's tasks. What masks on data hide counts as seen, for a plan does not know it.
// What a route decides counts as when all experts are chosen alike, and none is full.
class PlanWork {
 public:
  // Requires: `plan` outlives this; its form fits its program.
  explicit PlanWork(const Plan& plan);
  ~PlanWork();
  PlanWork(PlanWork&&) noexcept;
  PlanWork& operator=(PlanWork&&) noexcept;

  // Requires: a Compute.
  [[nodiscard]] TaskWork of(const Task& task) const;
  [[nodiscard]] double bytes_of(const Ref& ref) const { return bytes_->of(ref); }

 private:
  class Statement;
  std::unique_ptr<Blocks> blocks_;
  std::unique_ptr<RefBytes> bytes_;
  std::map<std::pair<std::string, int>, Statement> statements_;
};

// Floating-point operations of each rank's compute tasks in one execution.
[[nodiscard]] std::vector<double> work_of(const Plan& plan);

}  // namespace harpe
