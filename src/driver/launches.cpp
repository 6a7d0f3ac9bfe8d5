#include "driver/launches.h"

#ifdef HARPE_WITH_CUDA
#include "exec/cuda/executor/describe_launches.h"
#include "plan/launch_text.h"
#include "support/check.h"
#endif

namespace harpe {

#ifdef HARPE_WITH_CUDA
Checked<std::string> show_launches(const Plan& plan, bool paranoid) {
  HP_TRY(const launch::LaunchPlan launches, cuda::describe_launches(plan, {}));
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  std::string text = launch::print_launches(plan, blocks, launches);
  if (paranoid) {
    const auto again = launch::parse_launches(text, "", plan, blocks);
    HP_CHECK(again.ok(), "does not read back: " + render(again.error()) + "\n" + text);
    HP_CHECK(*again == launches, "reads back as other launches:\n" + text);
  }
  return text;
}
#else
Checked<std::string> show_launches(const Plan&, bool) { return make_diag(DiagCode::G001, {}); }
#endif

}  // namespace harpe
