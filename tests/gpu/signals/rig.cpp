#include "tests/gpu/signals/rig.h"

#include <cstdlib>
#include <thread>

namespace harpe::cuda::signals_test {

Checked<Tools> open_tools() {
  // A hardware queue for each stream: in a shared queue, a kernel that waits could block the kernel
  // that it waits for. The driver reads this variable only once.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  HP_TRY(std::shared_ptr<const DriverApi> driver, open_driver());
  const std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
  HP_TRY(Nvrtc compiler, Nvrtc::open(std::nullopt, folders));
  return Tools{.driver = std::move(driver), .compiler = std::move(compiler)};
}

Checked<std::unique_ptr<Rig>> Rig::build(const Tools& tools, int ranks) {
  HP_TRY(const int gpus, count_devices(*tools.driver));
  std::vector<Device> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    HP_TRY(Device device, Device::open(tools.driver, DeviceId(rank % gpus)));
    devices.push_back(std::move(device));
  }
  HP_TRY(
      Peers peers,
      Peers::open({.devices = std::move(devices), .arena_bytes = kArenaBytes, .flags = kSignals}));
  std::unique_ptr<Rig> rig(new Rig(std::move(peers)));
  for (int rank = 0; rank < ranks; ++rank) {
    std::unique_ptr<KernelLibrary>& library = rig->libraries_[rank % gpus];
    if (library != nullptr) continue;
    library =
        std::make_unique<KernelLibrary>(rig->peers_.device(rank), tools.compiler, cache_folder());
  }
  return rig;
}

Checked<std::vector<RankWork>> Rig::works(Checked<Ok> (RankWork::*capture)(),
                                          const std::function<WorkOptions(int)>& options) {
  std::vector<RankWork> works;
  for (int rank = 0; rank < peers_.ranks(); ++rank) {
    KernelLibrary& library = *libraries_.at(peers_.device(rank).facts().id.value);
    HP_TRY(const Kernels kernels, Kernels::load(library));
    HP_TRY(RankWork work, RankWork::create(peers_, rank, kernels, options(rank)));
    HP_REQUIRE_OK((work.*capture)());
    works.push_back(std::move(work));
  }
  return works;
}

Checked<Ok> Rig::replay(std::vector<RankWork>& works, std::int64_t times) {
  std::vector<Checked<Ok>> results(works.size(), Ok{});
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < works.size(); ++rank) {
      threads.emplace_back([&, rank] { results[rank] = works[rank].replay(times); });
    }
  }
  for (std::size_t rank = 0; rank < works.size(); ++rank) {
    if (!results[rank].ok()) {
      return with_note(results[rank].error(), "in rank " + std::to_string(rank));
    }
  }
  return Ok{};
}

void OnGpus::SetUp() {
  Checked<Tools> tools = open_tools();
  if (!tools.ok()) GTEST_SKIP() << "skipped: " << render(tools.error());
  tools_ = std::make_unique<Tools>(std::move(tools).value());
}

std::vector<int> OnGpus::rank_counts() const {
  std::vector<int> counts = {2, 4};
  const Checked<int> gpus = count_devices(*tools_->driver);
  if (gpus.ok() && *gpus > 4) counts.push_back(*gpus);
  return counts;
}

}  // namespace harpe::cuda::signals_test
