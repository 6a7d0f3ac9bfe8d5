#include "tests/gpu/signals/rank_work.h"

#include <array>
#include <cstdlib>

namespace harpe::cuda::signals_test {
namespace {

struct BlockArguments {
  DeviceAddress block;
  DeviceAddress epoch;
  DeviceAddress wrong;
  std::uint32_t words;
  std::uint32_t maker;
};

struct SleepArguments {
  DeviceAddress epoch;
  std::uint32_t salt;
  std::uint32_t most_ns;
};

const std::string kBlockHead = R"(
struct Arguments {
  unsigned* block; const unsigned* epoch; unsigned* wrong; unsigned words; unsigned maker;
};
__device__ unsigned pattern(unsigned epoch, unsigned maker, unsigned at) {
  return (epoch * 2654435761u) ^ (maker * 97531u + at);
}
extern "C" __global__ void harpe_kernel(const __grid_constant__ Arguments arguments) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= arguments.words) return;
  const unsigned expected = pattern(*arguments.epoch, arguments.maker, at);
)";

const std::string kSleepText = R"(
struct Arguments { const unsigned* epoch; unsigned salt; unsigned most_ns; };
extern "C" __global__ void harpe_kernel(const __grid_constant__ Arguments arguments) {
  unsigned mixed = *arguments.epoch * 747796405u + arguments.salt * 2891336453u;
  mixed = ((mixed >> 15) ^ mixed) * 277803737u;
  mixed = (mixed >> 13) ^ mixed;
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  const unsigned long long end = start + mixed % (arguments.most_ns + 1);
  do {
    asm volatile("nanosleep.u32 200;");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now < end);
}
)";

constexpr int kThreads = 256;

KernelVariant variant_of(const std::string& name, const std::string& source, int threads) {
  return {.name = "signals_test_" + name,
          .family = "test",
          .tile = "",
          .source = source,
          .threads = threads,
          .shared_bytes = 0,
          .uses_wgmma = false};
}

// Converts an error of the driver to a diagnostic of the test.
Checked<Ok> checked(const Result<Ok, CudaError>& result) {
  if (!result.ok()) return to_diag(result.error());
  return Ok{};
}

}  // namespace

Checked<Kernels> Kernels::load(KernelLibrary& library) {
  HP_TRY(const SignalKernels signals, SignalKernels::load(library));
  HP_TRY(const LoadedKernel* const fill,
         library.load(
             variant_of("fill", kBlockHead + "  arguments.block[at] = expected;\n}\n", kThreads)));
  HP_TRY(const LoadedKernel* const check,
         library.load(variant_of("check",
                                 kBlockHead + "  if (arguments.block[at] != expected) "
                                              "atomicAdd(arguments.wrong, 1u);\n}\n",
                                 kThreads)));
  HP_TRY(const LoadedKernel* const sleep, library.load(variant_of("sleep", kSleepText, 1)));
  return Kernels{.signals = signals, .fill = fill, .check = check, .sleep = sleep};
}

Checked<RankWork::Queue> RankWork::make_queue(const Device& device) {
  HP_TRY(Stream stream, Stream::create(device));
  HP_TRY(Event reached, Event::create_untimed(device));
  return Queue{.stream = std::move(stream), .reached = std::move(reached)};
}

Checked<RankWork> RankWork::create(const Peers& peers, int rank, const Kernels& kernels,
                                   const WorkOptions& options) {
  const Device& device = peers.device(rank);
  HP_TRY(Queue main, make_queue(device));
  HP_TRY(Queue side, make_queue(device));
  const DriverApi& driver = device.driver();
  HP_REQUIRE_OK(checked(device.make_current()));
  HP_REQUIRE_OK(driver_call(driver, "cuMemsetD8Async",
                            driver.cuMemsetD8Async(peers.arena(rank), 0, kArenaBytes, nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return RankWork(peers, rank, kernels, options, std::move(main), std::move(side));
}

Result<Ok, CudaError> RankWork::fill() const {
  const BlockArguments arguments{.block = peers_->arena(rank_),
                                 .epoch = own().epoch(),
                                 .wrong = 0,
                                 .words = kBlockWords,
                                 .maker = static_cast<std::uint32_t>(rank_)};
  const LaunchShape shape{.grid = {kBlockWords / kThreads, 1, 1}, .cluster = {1, 1, 1}};
  return launch(device().driver(), *kernels_.fill, shape, main_.stream.handle(), arguments);
}

Result<Ok, CudaError> RankWork::check(const Stream& stream, DeviceAddress block, int maker) const {
  const BlockArguments arguments{.block = block,
                                 .epoch = own().epoch(),
                                 .wrong = peers_->arena(rank_) + 2 * kBlockBytes,
                                 .words = kBlockWords,
                                 .maker = static_cast<std::uint32_t>(maker)};
  const LaunchShape shape{.grid = {kBlockWords / kThreads, 1, 1}, .cluster = {1, 1, 1}};
  return launch(device().driver(), *kernels_.check, shape, stream.handle(), arguments);
}

Result<Ok, CudaError> RankWork::sleep(const Stream& stream, std::uint32_t salt) const {
  const SleepArguments arguments{.epoch = own().epoch(),
                                 .salt = static_cast<std::uint32_t>(rank_) * 16 + salt,
                                 .most_ns = options_.most_delay_ns};
  return launch(device().driver(), *kernels_.sleep, LaunchShape{}, stream.handle(), arguments);
}

Result<Ok, CudaError> RankWork::begin_epoch() const {
  return kernels_.signals.begin_epoch(main_.stream, own(),
                                      peers_->page(rank_).context(options_.limit));
}

Result<Ok, CudaError> RankWork::put() const {
  const device::WaitContext context = peers_->page(rank_).context(options_.limit, 1);
  const std::array credit = {wait_on(own(), kCredit, 1, 1)};
  const std::array data = {flag_of(peers_->signals(next()), kData)};
  const DriverApi& driver = device().driver();
  HP_REQUIRE_OK(sleep(main_.stream, 0));
  HP_REQUIRE_OK(fill());
  HP_REQUIRE_OK(kernels_.signals.await(main_.stream, context, credit));
  HP_REQUIRE_OK(cuda_call(
      driver, "cuMemcpyAsync",
      driver.cuMemcpyAsync(peers_->arena(next()) + kBlockBytes, peers_->arena(rank_),
                           static_cast<std::size_t>(kBlockBytes), main_.stream.handle())));
  if (!options_.says_that_data_is_there) return Ok{};
  return kernels_.signals.raise(main_.stream, own(), data);
}

Result<Ok, CudaError> RankWork::receive() const {
  const device::WaitContext context = peers_->page(rank_).context(options_.limit, 2);
  const std::array data = {wait_on(own(), kData)};
  const std::array credit = {flag_of(peers_->signals(previous()), kCredit)};
  HP_REQUIRE_OK(kernels_.signals.await(side_.stream, context, data));
  HP_REQUIRE_OK(sleep(side_.stream, 1));
  HP_REQUIRE_OK(check(side_.stream, peers_->arena(rank_) + kBlockBytes, previous()));
  return kernels_.signals.raise(side_.stream, own(), credit);
}

Result<Ok, CudaError> RankWork::order_ring() const {
  HP_REQUIRE_OK(begin_epoch());
  HP_REQUIRE_OK(main_.reached.record(main_.stream));
  HP_REQUIRE_OK(side_.stream.wait_for(main_.reached));
  HP_REQUIRE_OK(put());
  HP_REQUIRE_OK(receive());
  HP_REQUIRE_OK(side_.reached.record(side_.stream));
  return main_.stream.wait_for(side_.reached);
}

Result<Ok, CudaError> RankWork::barrier(Signal counter) const {
  const device::WaitContext context = peers_->page(rank_).context(options_.limit, 3);
  std::vector<device::RaiseTarget> targets;
  for (int rank = 0; rank < peers_->ranks(); ++rank) {
    targets.push_back(counter_of(peers_->signals(rank), counter));
  }
  const std::array all = {wait_on(own(), counter, static_cast<std::uint32_t>(peers_->ranks()))};
  HP_REQUIRE_OK(kernels_.signals.raise(main_.stream, own(), targets));
  return kernels_.signals.await(main_.stream, context, all);
}

Result<Ok, CudaError> RankWork::order_barriers() const {
  HP_REQUIRE_OK(begin_epoch());
  HP_REQUIRE_OK(sleep(main_.stream, 2));
  HP_REQUIRE_OK(fill());
  HP_REQUIRE_OK(barrier(kAllWrote));
  for (int maker = 0; maker < peers_->ranks(); ++maker) {
    HP_REQUIRE_OK(check(main_.stream, peers_->arena(maker), maker));
  }
  HP_REQUIRE_OK(sleep(main_.stream, 3));
  return barrier(kAllRead);
}

Checked<Ok> RankWork::capture(Result<Ok, CudaError> (RankWork::*order)() const) {
  HP_REQUIRE_OK(checked(device().make_current()));
  HP_TRY(GraphCapture capture, GraphCapture::begin(device(), main_.stream));
  HP_REQUIRE_OK(checked((this->*order)()));
  HP_TRY(graph_, capture.end());
  return graph_->upload(main_.stream);
}

Checked<Ok> RankWork::capture_ring() { return capture(&RankWork::order_ring); }

Checked<Ok> RankWork::capture_barriers() { return capture(&RankWork::order_barriers); }

// At most two windows of runs wait in the driver. If its queues are full, a launch blocks, and with
// it the launches of other ranks on the same GPU.
Checked<Ok> RankWork::replay(std::int64_t times) {
  constexpr std::int64_t kWindow = 32;
  const DriverApi& driver = device().driver();
  HP_REQUIRE_OK(checked(device().make_current()));
  HP_TRY(const Event even, Event::create_untimed(device()));
  HP_TRY(const Event odd, Event::create_untimed(device()));
  for (std::int64_t run = 0; run < times; ++run) {
    HP_REQUIRE_OK(checked(graph_->launch(main_.stream)));
    if (run % kWindow != 0) continue;
    const bool is_even = (run / kWindow) % 2 == 0;
    HP_REQUIRE_OK(checked((is_even ? even : odd).record(main_.stream)));
    HP_REQUIRE_OK(driver_call(driver, "cuEventSynchronize",
                              driver.cuEventSynchronize((is_even ? odd : even).handle())));
  }
  return checked(main_.stream.synchronize());
}

Checked<std::uint32_t> RankWork::wrong_words() const {
  const DriverApi& driver = device().driver();
  HP_REQUIRE_OK(checked(device().make_current()));
  std::uint32_t count = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuMemcpyDtoHAsync",
                            driver.cuMemcpyDtoHAsync(&count, peers_->arena(rank_) + 2 * kBlockBytes,
                                                     sizeof(count), nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return count;
}

std::optional<std::string> cache_folder() {
  const char* const folder = std::getenv("HARPE_TEST_KERNEL_CACHE");
  if (folder == nullptr) return std::nullopt;
  return std::string(folder);
}

}  // namespace harpe::cuda::signals_test
