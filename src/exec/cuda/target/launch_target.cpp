#include "exec/cuda/target/launch_target.h"

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/signals/device/signal_args.h"
#include "exec/cuda/signals/reserved_sms.h"
#include "exec/cuda/target/check_tasks.h"
#include "exec/cuda/target/spec_offers.h"

namespace harpe::cuda {
namespace {

// Measured (plan_times.md): for all-gathers, and for sums with a narrower wire type, which pulls
// read unrounded.
constexpr std::int64_t kLeastGathered = std::int64_t{64} << 20;
constexpr std::int64_t kLeastRounded = std::int64_t{16} << 20;
// SMs that a kernel which waits inside leaves to kernels that make what it waits for.
constexpr std::int32_t kForKernels = 8;
constexpr std::int32_t kCopyBlocks = 12;  // enough for a GPU's whole outgoing bandwidth

launch::ExchangeEngine engine_of(CollectiveEngine engine) {
  switch (engine) {
    case CollectiveEngine::Auto:
      return launch::ExchangeEngine::Auto;
    case CollectiveEngine::Nccl:
      return launch::ExchangeEngine::Library;
    default:
      return launch::ExchangeEngine::Pull;
  }
}

}  // namespace

LaunchTarget::LaunchTarget(const DescribedTarget& target)
    : facts_{.name = "h200",
             .copy_engine = "copy_engine",
             .sms = target.multiprocessors,
             .shares_sms = target.shares_gpus && !target.divides_gpus,
             .takes_turns = target.takes_turns,
             .chunk_bytes = device::kCopyGranule,
             .sms_for_signals = kForSignals,
             .sms_for_kernels = kForKernels,
             .copy_blocks = kCopyBlocks,
             .most_in_data = kMostInData,
             .most_bounds = device::kMostBounds,
             .exchanges = {.engine = engine_of(target.collectives),
                           .shares_gpus = target.shares_gpus,
                           .least_gathered = kLeastGathered,
                           .least_rounded = kLeastRounded}} {}

Checked<Ok> LaunchTarget::check(const Plan& plan) const {
  HP_REQUIRE_OK(check_tasks(plan));
  return actions::check_buffers(plan.program);
}

std::unique_ptr<launch::Offers> LaunchTarget::open(const Plan& plan, const Blocks& blocks,
                                                   const launch::Exchanges& exchanges,
                                                   const std::vector<AllocId>& partials16) const {
  return std::make_unique<SpecOffers>(plan, blocks, exchanges, partials16, facts_.sms);
}

}  // namespace harpe::cuda
