#include "exec/cuda/profile/orders.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "exec/actions/action.h"
#include "exec/cuda/kernels/plain/plain_launch.h"
#include "exec/cuda/runtime/current_device.h"
#include "support/check.h"

namespace harpe::cuda::profile {
namespace {

constexpr double kGraphSeconds = 4e-3;

}  // namespace

LaunchChoice choice_of(const Member& member) {
  return {.nest = "profile",
          .buffer = "profile",
          .multiprocessors = member.device->facts().multiprocessors};
}

Checked<LaunchSpec> copy_spec(const Member& member, Way way, DeviceAddress to, DeviceAddress from,
                              std::int64_t bytes, std::int64_t blocks) {
  const std::vector<std::int64_t> lengths = {bytes / size_in_bytes(DType::F32)};
  const std::vector<std::vector<std::int64_t>> strides = {{1}, {1}};
  actions::Assign copy;
  copy.to.data = reinterpret_cast<std::byte*>(to);
  copy.from.data = reinterpret_cast<std::byte*>(from);
  copy.rows = actions::Rows(lengths, strides);
  LaunchChoice choice = choice_of(member);
  choice.by_copy_engine = way == Way::Engine;
  HP_TRY(LaunchSpecs specs, plan_launches(choice, copy));
  HP_CHECK(specs.size() == 1, "bytes in a row are one launch");
  if (auto* const kernel = specs.front().find<PlainLaunch>(); kernel && blocks > 0) {
    kernel->blocks = std::min(kernel->blocks, blocks);
  }
  return specs.front();
}

Checked<SharedLaunches> make_ready(const Member& member, const LaunchSpecs& specs) {
  const CurrentDevice current(*member.device);
  auto launches = std::make_shared<Launches>();
  const LaunchTools tools{.kernels = *member.kernels,
                          .multiprocessors = member.device->facts().multiprocessors};
  for (const LaunchSpec& spec : specs) HP_REQUIRE_OK(launches->add(tools, spec));
  return SharedLaunches(std::move(launches));
}

Checked<Ok> enqueue(const Member& member, const SharedLaunches& launches, std::int64_t times,
                    std::size_t queue) {
  for (std::int64_t i = 0; i < times; ++i) {
    HP_REQUIRE_OK(checked(launches->enqueue(member.queue(queue).handle())));
  }
  return Ok{};
}

std::int64_t times_of(double seconds, std::int64_t most) {
  return std::clamp<std::int64_t>(std::llround(kGraphSeconds / seconds), 1, most);
}

}  // namespace harpe::cuda::profile
