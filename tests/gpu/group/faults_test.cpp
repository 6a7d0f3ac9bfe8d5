#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "exec/cuda/group/join_group.h"
#include "exec/cuda/runtime/device_memory.h"
#include "exec/cuda/runtime/tensor_map.h"
#include "tests/support/cuda_executor.h"
#include "tests/unit/exec/plans.h"
#include "transport/local_exchange.h"

// What a group assumes of the driver, and faults that only tests can inject.
namespace harpe::cuda {
namespace {

constexpr int kPair = 2;

class GpuGroupInside : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::missing_for_gpus()) GTEST_SKIP() << "skipped: " << *missing;
  }
};

// Relocation rewrites the first 8 bytes of a tensor map, so the address must be there alone.
TEST_F(GpuGroupInside, finds_the_address_of_a_tensor_map_in_its_first_word_and_nowhere_else) {
  const auto driver = open_driver().value();
  const Device device = Device::open(driver, DeviceId(0)).value();
  const DeviceMemory memory = DeviceMemory::allocate(device, 1 << 20).value();
  TensorMapSpec spec{
      .address = memory.address(), .sizes = {256, 64}, .strides = {1, 256}, .box = {64, 64}};
  const device::TensorMap one = encode_map(*driver, spec).value();
  spec.address += 4096 + 16;
  const device::TensorMap other = encode_map(*driver, spec).value();
  std::array<std::uint64_t, sizeof(one) / 8> words{};
  std::array<std::uint64_t, sizeof(one) / 8> others{};
  std::memcpy(words.data(), &one, sizeof(one));
  std::memcpy(others.data(), &other, sizeof(other));
  EXPECT_EQ(words[0], memory.address());
  EXPECT_EQ(others[0], memory.address() + 4096 + 16);
  EXPECT_TRUE(std::equal(words.begin() + 1, words.end(), others.begin() + 1));
}

// Relocation needs this function for the parameters of captured kernels.
TEST_F(GpuGroupInside, can_ask_how_large_parameters_are) {
  EXPECT_NE(open_driver().value()->cuFuncGetParamInfo, nullptr);
}

// The copy by which rank 1 signals its part to rank 0.
TaskId copy_of_rank_1(const Plan& plan) {
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    const Task& each = plan.tasks[task];
    if (each.kind != TaskKind::Copy || plan.queues[each.queue.index()].rank != RankId(1)) continue;
    const RankId to = plan.allocs[each.writes.front().alloc.index()].rank;
    if (to == RankId(0)) return TaskId(static_cast<std::int64_t>(task));
  }
  ADD_FAILURE() << "rank 1 copies nothing to rank 0";
  return TaskId(0);
}

TEST_F(GpuGroupInside, reports_a_lost_signal_at_the_next_launch) {
  const Plan plan = test::scatter_gemm(kPair, 256, 256, 256, "f32", false);
  const TaskId lost = copy_of_rank_1(plan);
  std::vector<std::jthread> threads;
  for (auto& exchange : transport::make_local_exchanges(kPair, std::chrono::seconds(60))) {
    threads.emplace_back([&, exchange] {
      const auto group =
          join_group({.exchange = exchange, .wait_limit = std::chrono::milliseconds(500)},
                     {.kernel_cache = test::kernel_folder(),
                      .cuda_folders = {"/usr/local/cuda/lib64"},
                      .drop_signal_of = lost});
      ASSERT_TRUE(group.ok()) << render(group.error());
      const auto made = (*group)->make(plan);
      ASSERT_TRUE(made.ok()) << render(made.error());
      RankExecutable& executable = **made;
      const Device device = Device::open(open_driver().value(), DeviceId(0)).value();
      const Stream stream = Stream::create(device).value();
      std::vector<DeviceMemory> memory;
      std::vector<TensorView> tensors;
      for (const LocalHome& home : executable.homes()) {
        memory.push_back(DeviceMemory::zeros(device, home.bytes() / 4 + 1).value());
        TensorView& tensor = tensors.emplace_back();
        tensor.data = reinterpret_cast<std::byte*>(memory.back().address());
        tensor.dtype = home.dtype;
        tensor.axes = home.shape.size();
        std::int64_t stride = 1;
        for (std::size_t axis = tensor.axes; axis-- > 0; stride *= tensor.shape[axis]) {
          tensor.shape[axis] = home.shape[axis];
          tensor.strides[axis] = stride;
        }
      }
      ASSERT_TRUE(executable.launch(tensors, stream.handle()).ok());
      ASSERT_TRUE(stream.synchronize().ok());
      if (exchange->rank() == 0) {
        const auto next = executable.launch(tensors, stream.handle());
        ASSERT_FALSE(next.ok());
        const FaultReport& report = std::get<ExecutionFault>(next.error()).report;
        EXPECT_EQ(report.front().kind, FaultKind::WaitTimedOut) << render(report);
        EXPECT_EQ(report.front().producer, lost) << render(report);
        EXPECT_EQ(report.front().producer_rank, RankId(1)) << render(report);
        EXPECT_TRUE((*group)->check().has_value());
      }
      EXPECT_TRUE((*group)->reset().ok());
      EXPECT_FALSE((*group)->check().has_value());
    });
  }
}

}  // namespace
}  // namespace harpe::cuda
