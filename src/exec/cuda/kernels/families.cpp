#include <algorithm>
#include <array>

#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/kernels/shipped_variants.h"
#include "exec/cuda/signals/signal_variants.h"
#include "support/check.h"

namespace harpe::cuda {

#define HP_KERNELS(FOLDER) KernelFamily FOLDER##_family();
#include "exec/cuda/kernels/kernels.def"
#undef HP_KERNELS

namespace {

const auto& families() {
  static const std::array kFamilies = {
#define HP_KERNELS(FOLDER) FOLDER##_family(),
#include "exec/cuda/kernels/kernels.def"
#undef HP_KERNELS
  };
  return kFamilies;
}

}  // namespace

Checked<LaunchSpecs> plan_launches(const LaunchChoice& choice, const actions::Action& action) {
  std::optional<LaunchSpecs> specs;
  for (const KernelFamily& family : families()) {
    HP_TRY(specs, family.plan(choice, action));
    if (specs) break;
  }
  HP_CHECK(specs, "the last family takes every action");
  return *std::move(specs);
}

bool moves_by_threads(const launch::Kernel& kernel, DType dtype) {
  return std::ranges::any_of(families(), [&](const KernelFamily& family) {
    return family.moves_by_threads != nullptr && family.moves_by_threads(kernel, dtype);
  });
}

bool bounds_epochs(const launch::Kernel& kernel) {
  return std::ranges::any_of(families(), [&](const KernelFamily& family) {
    return family.bounds_epochs != nullptr && family.bounds_epochs(kernel);
  });
}

std::vector<KernelVariant> shipped_variants() {
  std::vector<KernelVariant> all;
  const auto add = [&](const std::vector<KernelVariant>& variants) {
    all.insert(all.end(), variants.begin(), variants.end());
  };
  for (const KernelFamily& family : families()) {
    if (family.variants != nullptr) add(family.variants());
  }
  add(signal_variants());
  return all;
}

}  // namespace harpe::cuda
