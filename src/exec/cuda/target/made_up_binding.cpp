#include "exec/cuda/target/made_up_binding.h"

#include <utility>

#include "launch/make_launches.h"

namespace harpe::cuda {
namespace {

constexpr std::uintptr_t kFirstSignal = std::uintptr_t{1} << 61;

Plan with_boxes(Plan plan, const launch::Exchanges& exchanges) {
  plan.allocs.insert(plan.allocs.end(), exchanges.boxes.begin(), exchanges.boxes.end());
  return plan;
}

}  // namespace

MadeUpBinding::MadeUpBinding(const Plan& plan, const Blocks& blocks,
                             const launch::LaunchPlan& launches, const DescribedTarget& target)
    : target_(target),
      launches_(launches),
      exchanges_(launch::exchanges_of(plan, blocks, LaunchTarget(target))),
      plan_(with_boxes(plan, exchanges_)),
      collectives_(bind_exchanges(plan_, blocks, exchanges_)),
      memory_(plan_, blocks),
      narrow_(NarrowStates::of(plan_, memory_.bases(), launches.partials16)),
      source_(memory_.source(narrow_, collectives_, target.multiprocessors)),
      pages_(launches, plan.mesh.ranks()) {}

Checked<std::unique_ptr<MadeUpBinding>> MadeUpBinding::make(const Plan& plan, const Blocks& blocks,
                                                            const launch::LaunchPlan& launches,
                                                            const DescribedTarget& target) {
  std::unique_ptr<MadeUpBinding> binding(new MadeUpBinding(plan, blocks, launches, target));
  HP_REQUIRE_OK(binding->prepare_alone());
  return binding;
}

Checked<Ok> MadeUpBinding::prepare_alone() {
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    const TaskId id(static_cast<std::int64_t>(i));
    HP_TRY(TaskSpecs specs, specs_of(source_, id, kNowhere));
    alone_.push_back(describe_alone(source_, id, std::move(specs.launches)));
  }
  return Ok{};
}

Checked<LaunchSpecs> MadeUpBinding::bind(const launch::Launch& launch) {
  const BindSource source{.memory = source_, .alone = alone_, .cells = cells()};
  HP_TRY(LaunchSpecs specs, cuda::bind(source, launch));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    HP_REQUIRE_OK(specs[i]->check(target_.multiprocessors - launch.reserved_sms));
    HP_REQUIRE_OK(check_variant(launch, launch.kernels[i], specs[i]));
  }
  return specs;
}

std::uint32_t* MadeUpBinding::cell_of(launch::SignalId signal) {
  return reinterpret_cast<std::uint32_t*>(kFirstSignal + 4 * signal.index());
}

SignalCells MadeUpBinding::cells() const {
  return {.awaited = [this](launch::SignalId id) -> device::FlagWait {
            return {.flag = cell_of(id),
                    .arrivals = static_cast<std::uint32_t>(pages_[id].arrivals),
                    .name = static_cast<std::uint32_t>(pages_.index_of(id))};
          },
          .raised = [](const launch::Raise& raise) -> std::optional<device::RaiseTarget> {
            return device::RaiseTarget{cell_of(raise.signal), nullptr, raise.adds};
          },
          .is_in_data = [this](launch::SignalId id) { return pages_[id].is_in_data; }};
}

Checked<Ok> check_binding(const Plan& plan, const Blocks& blocks,
                          const launch::LaunchPlan& launches, const DescribedTarget& target) {
  HP_TRY(const std::unique_ptr<MadeUpBinding> binding,
         MadeUpBinding::make(plan, blocks, launches, target));
  for (const launch::Launch& launch : launches.launches) {
    HP_REQUIRE_OK(binding->bind(launch));
  }
  return Ok{};
}

}  // namespace harpe::cuda
