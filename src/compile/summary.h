#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/mesh.h"
#include "plan/plan.h"

namespace harpe {

// A plan in figures.
struct PlanSummary {
  std::string program;
  std::string mesh;  // as on a command line
  std::string schedule;
  std::vector<std::string> steps;  // print_steps, for a schedule that a search found
  std::int64_t ranks = 0;
  std::int64_t tasks = 0;
  std::int64_t syncs = 0;
  std::int64_t barriers = 0;
  std::int64_t bytes_moved = 0;   // by copies and collectives of one execution, over all ranks
  std::int64_t memory_bytes = 0;  // of one rank's arena
  std::vector<double> work;       // floating-point operations by rank (work_of)
  double flops = 0;               // over all ranks
  double balance = 1;             // the busiest rank's operations over the mean
};

[[nodiscard]] PlanSummary summarise(const Plan& plan);

}  // namespace harpe
