#include "driver/launches.h"

#ifdef HARPE_WITH_CUDA
#include "exec/cuda/executor/describe_launches.h"
#include "plan/launch_text.h"
#endif

namespace harpe {

#ifdef HARPE_WITH_CUDA
Checked<std::string> show_launches(const Plan& plan) {
  HP_TRY(const launch::LaunchPlan launches, cuda::describe_launches(plan, {}));
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  return launch::print_launches(plan, blocks, launches);
}
#else
Checked<std::string> show_launches(const Plan&) { return make_diag(DiagCode::G001, {}); }
#endif

}  // namespace harpe
