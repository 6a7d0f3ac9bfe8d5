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

// The dimensions of a compute task. A GEMM has `batch` problems of rows x columns x depth;
// attention has `batch` heads with rows queries, columns keys and head dimension depth; other
// leaves have only rows, one per point. Several boxes count as more batch.
struct TaskWork {
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
  double flops = 0;     // under a mask, only visible pairs
  bool masked = false;  // some pairs are hidden
  friend bool operator==(const TaskWork&, const TaskWork&) = default;
};

// The work of a plan's tasks. Masks on data count as hiding nothing, because the plan does not
// contain the data. For routes it assumes that experts are chosen equally often and no expert is
// full.
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
