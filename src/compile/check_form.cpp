#include "compile/check_form.h"

#include <algorithm>

#include "lower/lower.h"
#include "lower/size.h"
#include "support/print_bytes.h"

namespace harpe {
namespace {

// Bytes of memory per task to lower, check and simulate: measured on rings over 1,024 ranks.
constexpr double kBytesOfTask = 1700;

}  // namespace

Checked<Ok> check_steps(const Mesh& mesh, const NormalForm& form, std::int64_t most) {
  const auto ranks = static_cast<double>(mesh.ranks());
  for (const NestForm& nest : form.nests) {
    const double tasks = ranks * count_tasks(mesh, form, nest);
    if (tasks <= static_cast<double>(most)) continue;
    return make_diag(
        DiagCode::I503,
        {{"nest", nest.nest},
         {"tasks", static_cast<std::int64_t>(std::min(tasks, 1e18))},
         {"ranks", mesh.ranks()},
         {"needed", print_bytes(static_cast<std::int64_t>(std::min(tasks * kBytesOfTask, 1e18)))},
         {"limit", most}});
  }
  return Ok{};
}

Checked<Ok> check_form(const Program& program, const Mesh& mesh, const NormalForm& form) {
  if (!check_steps(mesh, form).ok()) return check_rules(program, mesh, form);
  const Checked<Plan> plan = lower(program, mesh, form);
  return plan.ok() ? Checked<Ok>(Ok{}) : plan.error();
}

}  // namespace harpe
