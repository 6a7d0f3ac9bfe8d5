#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "exec/cuda/group/join_group.h"
#include "exec/cuda/group/rank_executable.h"
#include "exec/cuda/jit/nvrtc.h"
#include "tests/support/recording_driver.h"
#include "tests/unit/exec/plans.h"
#include "transport/local_exchange.h"

// Groups of ranks on a driver without a GPU: kernels are compiled, graphs are kept, nothing runs.
namespace harpe::cuda {

using std::chrono::milliseconds;
using testing_support::make_recording_driver;
using testing_support::RecordedNode;
using testing_support::Recording;
using testing_support::recording;
using Bindable = CudaRankExecutable::Bindable;
using Calls = std::vector<std::string>;

constexpr int kGroupRanks = 2;
constexpr std::int64_t kHeap = std::int64_t{64} << 20;
constexpr std::int64_t kTensorBytes = std::int64_t{8} << 20;

// The address of a test's tensors; nothing dereferences it.
constexpr std::uint64_t kTensors = std::uint64_t{1} << 44;
constexpr std::uint64_t kApart = std::uint64_t{1} << 32;

inline TensorView dense(const LocalHome& home, std::uint64_t address) {
  TensorView tensor{.data = reinterpret_cast<std::byte*>(address),
                    .dtype = home.dtype,
                    .axes = home.shape.size()};
  std::int64_t stride = 1;
  for (std::size_t axis = tensor.axes; axis-- > 0;) {
    tensor.shape[axis] = home.shape[axis];
    tensor.strides[axis] = stride;
    stride *= home.shape[axis];
  }
  return tensor;
}

// The address of the rank's arena; memory is handed out in order.
inline std::uint64_t arena_of(int rank) { return std::uint64_t{1} << (40 + rank); }

// The tensors of a set, each at its own address.
inline std::vector<TensorView> tensors_of(const RankExecutable& executable, std::uint64_t set) {
  std::vector<TensorView> tensors;
  for (const LocalHome& home : executable.homes()) {
    const std::uint64_t place = set * executable.homes().size() + tensors.size();
    tensors.push_back(dense(home, kTensors + place * kApart));
  }
  return tensors;
}

class OnRecordedGpus : public testing::Test {
 protected:
  using Body = std::function<void(RankGroup& group, int rank)>;

  void SetUp() override {
    const auto compiler = Nvrtc::open(std::nullopt, kFolders);
    if (!compiler.ok()) GTEST_SKIP() << "skipped: " << render(compiler.error());
  }

  // Runs each rank in its own thread, all on one GPU.
  static void run_ranks(const Body& body, const GroupRequest& request = {.heap_bytes = kHeap}) {
    const auto driver = make_recording_driver();
    std::vector<std::jthread> threads;
    int next = 0;
    for (auto& exchange : transport::make_local_exchanges(kGroupRanks, milliseconds(60'000))) {
      threads.emplace_back([&body, given = request, driver, exchange, rank = next++]() mutable {
        recording() = {.memory = arena_of(rank)};
        given.exchange = exchange;
        auto group = join_group(
            given, {.kernel_cache = kernel_folder(), .cuda_folders = kFolders, .driver = driver});
        ASSERT_TRUE(group.ok()) << render(group.error());
        body(**group, rank);
      });
    }
  }

  static std::unique_ptr<RankExecutable> make(RankGroup& group, const Plan& plan) {
    auto made = group.make(plan);
    EXPECT_TRUE(made.ok()) << render(made.error());
    return std::move(made).value();
  }

  static void launch(RankExecutable& executable, std::span<const TensorView> tensors,
                     void* stream = nullptr) {
    const auto launched = executable.launch(tensors, stream);
    ASSERT_TRUE(launched.ok());
  }

  static const std::string& kernel_folder() {
    static const std::string kKernels = [] {
      std::string path = (std::filesystem::temp_directory_path() / "harpe-group-XXXXXX").string();
      return std::string(::mkdtemp(path.data()));
    }();
    return kKernels;
  }

  inline static const std::vector<std::string> kFolders = {"/usr/local/cuda/lib64"};
};
inline const CudaRankExecutable& of_gpus(const RankExecutable& executable) {
  return dynamic_cast<const CudaRankExecutable&>(executable);
}

}  // namespace harpe::cuda
