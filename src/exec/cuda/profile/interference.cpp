#include <cmath>

#include "exec/cuda/profile/leaf_specs.h"
#include "exec/cuda/profile/measure.h"
#include "exec/cuda/profile/orders.h"

namespace harpe::cuda::profile {
namespace {

constexpr std::int64_t kBytes = std::int64_t{128} << 20;  // of a copy
constexpr int kGemms = 4;                                 // timed
constexpr int kLonger = 4;  // the background lasts this many times longer, because work runs twice

// A cubic GEMM that fills the GPU.
Checked<Order> gemms_of(const Member& member, std::int64_t size, std::int64_t times) {
  const Operands at{.in = member.source, .out = member.target};
  HP_TRY(const SharedLaunches gemm,
         make_ready(member, {gemm_spec(at, {.m = size, .n = size, .k = size})}));
  return Order([gemm, times](const Member& own) { return enqueue(own, gemm, times); });
}

// Copies to the next GPU, while the previous GPU copies to this one; behind the GEMMs' results.
Checked<Order> copies_of(const Crew& crew, const Member& member, std::int64_t times) {
  const Member& next = crew.member((member.rank + 1) % crew.size());
  const auto behind = static_cast<DeviceAddress>(kTargetBytes - kBytes);
  HP_TRY(const LaunchSpec spec,
         copy_spec(member, Way::Engine, next.target + behind, member.source, kBytes));
  HP_TRY(const SharedLaunches copy, make_ready(member, {spec}));
  return Order([copy, times](const Member& at) { return enqueue(at, copy, times); });
}

}  // namespace

Checked<Interference> measure_interference(Crew& crew, bool quick) {
  const std::int64_t size = quick ? 2048 : 8192;
  const auto gemms = [&](std::int64_t times) {
    return [&, times](const Member& member) { return gemms_of(member, size, times); };
  };
  const auto copies = [&](std::int64_t times) {
    return [&, times](const Member& member) { return copies_of(crew, member, times); };
  };
  std::vector<Trial> alone;
  HP_TRY(Trial gemm, crew.capture(kGemms, gemms(kGemms)));
  alone.push_back(std::move(gemm));
  HP_TRY(Trial copy, crew.capture(1, copies(1)));
  alone.push_back(std::move(copy));
  HP_TRY(const std::vector<double> own, crew.time(alone));
  const auto reach = [&](double seconds, double of) {
    return static_cast<std::int64_t>(std::ceil(kLonger * seconds / of));
  };
  const std::int64_t many = reach(1e-3, own[1]);  // timed copies: some milliseconds
  std::vector<Trial> beside;
  HP_TRY(Trial gemm_beside, crew.capture(kGemms, gemms(kGemms)));
  HP_REQUIRE_OK(crew.add_background(gemm_beside, copies(reach(kGemms * own[0], own[1]))));
  beside.push_back(std::move(gemm_beside));
  HP_TRY(Trial copy_alone, crew.capture(static_cast<double>(many), copies(many)));
  beside.push_back(std::move(copy_alone));
  HP_TRY(Trial copy_beside, crew.capture(static_cast<double>(many), copies(many)));
  const double longest = static_cast<double>(many) * own[1];
  HP_REQUIRE_OK(crew.add_background(copy_beside, gemms(reach(longest, own[0]))));
  beside.push_back(std::move(copy_beside));
  HP_TRY(const std::vector<double> seconds, crew.time(beside));
  return Interference{.product = own[0] / seconds[0], .copies = seconds[1] / seconds[2]};
}

}  // namespace harpe::cuda::profile
