#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "support/time_limit.h"

namespace harpe {

struct LowerOptions {
  // Derives transfers by the space-time rules of commir.md section 4 alone: no scatter of
  // replicated drains (D14), no tied lse states, no kernel capabilities, no elimination, merging,
  // packing or collectives. The differential tests compare this with the executable model.
  bool space_time_only = false;
  // Memory limit of the order reduction, in bytes.
  std::int64_t most_order_bytes = std::int64_t{8} << 30;
  TimeLimit limit = {};
  // Called after each stage with its name, a function that renders the draft as text, and the time
  // it took.
  std::function<void(std::string_view stage, const std::function<std::string()>& text,
                     std::chrono::nanoseconds time)>
      after_stage;
};

// ground program + mesh + normal form -> plan: the stages of commir.md 7.2, in order. Pure.
// Errors: F1xx names and digits, F2xx rules of section 4 (operands, outputs, relay, …), F3xx
// capability; I504 the order needs more memory; I505 the time limit expired.
[[nodiscard]] Checked<Plan> lower(const Program& program, const Mesh& mesh, const NormalForm& form,
                                  const LowerOptions& options = {});

// Checks everything that needs no walk over ranks and steps: names and digits, capabilities, and
// the rules of commir.md 4 on homes, loops and moves. For schedules whose plans are too large to
// make (10.6). Errors: those of lower, except F211, F212, F214 and F217, which need the walk.
[[nodiscard]] Checked<Ok> check_rules(const Program& program, const Mesh& mesh,
                                      const NormalForm& form);

}  // namespace harpe
