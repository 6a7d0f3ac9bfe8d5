#include "exec/cuda/signals/signal_kernels.h"

#include <algorithm>

#include "exec/cuda/signals/signal_variants.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

std::uint32_t* word_at(DeviceAddress address) { return reinterpret_cast<std::uint32_t*>(address); }

// Moves the first kMostSignals of `rest`, at most, into a launch's arguments.
template <class Signal>
std::int32_t take(std::span<const Signal>& rest, Signal* to) {
  const std::size_t count = std::min<std::size_t>(rest.size(), device::kMostSignals);
  std::ranges::copy(rest.first(count), to);
  rest = rest.subspan(count);
  return static_cast<std::int32_t>(count);
}

// Likewise for `targets`.
device::RaiseArgs raise_args(const SignalAddresses& own,
                             std::span<const device::RaiseTarget>& targets) {
  device::RaiseArgs args{};
  args.epoch = word_at(own.epoch());
  args.poison = word_at(own.poison());
  args.count = take(targets, args.targets);
  return args;
}

}  // namespace

Checked<SignalKernels> SignalKernels::load(KernelLibrary& library) {
  HP_TRY(const LoadedKernel* const turn, library.load(turn_variant()));
  HP_TRY(const LoadedKernel* const raise, library.load(raise_variant()));
  HP_TRY(const LoadedKernel* const await, library.load(await_variant()));
  HP_TRY(const LoadedKernel* const post, library.load(post_variant()));
  HP_TRY(const LoadedKernel* const linger, library.load(linger_variant()));
  HP_TRY(const LoadedKernel* const stray, library.load(stray_variant()));
  return SignalKernels(library.device().driver(), turn, raise, await, post, linger, stray);
}

// Waits beyond one launch's maximum are awaited before it; such targets are raised behind it.
Result<Ok, CudaError> SignalKernels::turn(const Stream& stream, const SignalAddresses& own,
                                          const device::WaitContext& context, Turn turn) const {
  HP_CHECK(context.fault != nullptr, "what stands between executions tells of a poisoned rank");
  const std::size_t before =
      turn.waits.size() - std::min<std::size_t>(turn.waits.size(), device::kMostSignals);
  HP_REQUIRE_OK(await(stream, context, turn.waits.first(before)));
  turn.waits = turn.waits.subspan(before);
  device::TurnArgs args{};
  args.await.context = context;
  args.await.count = take(turn.waits, args.await.waits);
  args.counted_epoch = turn.counts_epoch ? word_at(own.epoch()) : nullptr;
  args.raise = raise_args(own, turn.targets);
  const LaunchShape shape{.begins_early = turn.begins_early || before > 0};
  HP_REQUIRE_OK(launch(*driver_, *turn_, shape, stream.handle(), args));
  return raise(stream, own, turn.targets, true);
}

Result<Ok, CudaError> SignalKernels::raise(const Stream& stream, const SignalAddresses& own,
                                           std::span<const device::RaiseTarget> targets,
                                           bool begins_early) const {
  while (!targets.empty()) {
    const device::RaiseArgs args = raise_args(own, targets);
    const LaunchShape shape{.begins_early = begins_early};
    HP_REQUIRE_OK(launch(*driver_, *raise_, shape, stream.handle(), args));
    begins_early = true;
  }
  return Ok{};
}

Result<Ok, CudaError> SignalKernels::await(const Stream& stream, const device::WaitContext& context,
                                           std::span<const device::SignalWait> waits) const {
  while (!waits.empty()) {
    device::AwaitArgs args{};
    args.context = context;
    args.count = take(waits, args.waits);
    HP_REQUIRE_OK(launch(*driver_, *await_, LaunchShape{}, stream.handle(), args));
  }
  return Ok{};
}

Result<Ok, CudaError> SignalKernels::post(const Stream& stream, const device::WaitContext& context,
                                          std::span<const device::Post> posts) const {
  while (!posts.empty()) {
    device::PostArgs args{};
    args.context = context;
    args.count = take(posts, args.posts);
    HP_REQUIRE_OK(launch(*driver_, *post_, LaunchShape{}, stream.handle(), args));
  }
  return Ok{};
}

Result<Ok, CudaError> SignalKernels::linger(const Stream& stream, const SignalAddresses& own,
                                            std::uint32_t seed, std::uint32_t most_ns) const {
  const device::LingerArgs args{.epoch = word_at(own.epoch()), .seed = seed, .most_ns = most_ns};
  return launch(*driver_, *linger_, LaunchShape{}, stream.handle(), args);
}

Result<Ok, CudaError> SignalKernels::stray(const Stream& stream) const {
  constexpr std::uint64_t kNobodys = 0x100;  // the first pages are never mapped
  const device::StrayArgs args{.address = kNobodys};
  return launch(*driver_, *stray_, LaunchShape{}, stream.handle(), args);
}

device::RaiseTarget target_of(const SignalAddresses& peer, std::int32_t index,
                              std::uint32_t added) {
  return {.word = word_at(peer.flag(index)), .peer_poison = word_at(peer.poison()), .added = added};
}

device::SignalWait wait_on(const SignalAddresses& own, std::int32_t index, std::uint32_t arrivals,
                           std::uint32_t epochs_back) {
  const device::FlagWait wait{.flag = word_at(own.flag(index)),
                              .arrivals = arrivals,
                              .name = static_cast<std::uint32_t>(index)};
  return {.wait = wait, .epochs_back = epochs_back};
}

}  // namespace harpe::cuda
