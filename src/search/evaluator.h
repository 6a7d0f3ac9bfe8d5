#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "support/time_limit.h"
#include "support/units.h"

namespace harpe {

struct Evaluation {
  Picoseconds time;
  std::int64_t memory_bytes = 0;  // of one rank's arena
  Plan plan;
};

// Estimates a schedule's time and memory. One implementation simulates; another, outside this
// module, measures on real ranks.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Errors: lower's; check_fits'; I505.
  [[nodiscard]] virtual Checked<Evaluation> evaluate(const NormalForm& form) = 0;
};

// Lowers and simulates, until the time limit is over.
class SimulationEvaluator final : public Evaluator {
 public:
  // `make_launches` makes the launch plan; without it every task is launched by itself.
  SimulationEvaluator(const Program& program, const Mesh& mesh, const Machine& machine,
                      std::function<launch::LaunchPlan(const Plan& plan)> make_launches,
                      TimeLimit limit = {})
      : program_(program),
        mesh_(mesh),
        machine_(machine),
        make_launches_(std::move(make_launches)),
        limit_(std::move(limit)) {}
  [[nodiscard]] Checked<Evaluation> evaluate(const NormalForm& form) override;

 private:
  const Program& program_;
  const Mesh& mesh_;
  const Machine& machine_;
  std::function<launch::LaunchPlan(const Plan& plan)> make_launches_;
  TimeLimit limit_;
};

}  // namespace harpe
