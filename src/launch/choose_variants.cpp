#include "launch/passes.h"
#include "support/check.h"

namespace harpe::launch {

void choose_variants(Draft& draft) {
  for (Step& step : draft.steps) {
    if (step.is_joined || step.launch.lands) continue;
    for (Kernel& kernel : step.launch.kernels) {
      if (kernel.panels.empty()) continue;
      std::optional<std::string> variant = draft.offers.choose(step.launch, kernel);
      HP_CHECK(variant, "`" + kernel.name + "` does what was chosen for it");
      kernel.variant = *std::move(variant);
    }
  }
}

}  // namespace harpe::launch
