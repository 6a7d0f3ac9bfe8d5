#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/cuda/runtime/device.h"
#include "harpe/harpe.h"
#include "tests/support/cuda_executor.h"

// Ranks that are threads of this process and share its first GPU, with tensors in its memory.
namespace harpe::ranks_on_gpus {

using test::kernel_folder;
using test::missing_for_gpus;
using v1::Argument;
using v1::Buffer;
using v1::Checked;
using v1::dense;
using v1::Done;
using v1::draw_inputs;
using v1::DType;
using v1::ErrorKind;
using v1::Executable;
using v1::Group;
using v1::LocalTensor;
using v1::Plan;
using v1::plan;
using v1::Question;
using v1::shard;
using v1::Tensor;
using v1::Value;
using Tensors = std::map<std::string, Tensor>;

inline const cuda::Device& gpu() {
  static const cuda::Device kDevice =
      cuda::Device::open(cuda::open_driver().value(), cuda::DeviceId(0)).value();
  return kDevice;
}

inline void must(CUresult result) { ASSERT_EQ(result, CUDA_SUCCESS); }

// A stream that belongs to the caller.
class CallerStream {
 public:
  CallerStream() { must(gpu().driver().cuStreamCreate(&handle_, CU_STREAM_NON_BLOCKING)); }
  CallerStream(const CallerStream&) = delete;
  CallerStream& operator=(const CallerStream&) = delete;
  ~CallerStream() { gpu().driver().cuStreamDestroy(handle_); }
  [[nodiscard]] CUstream handle() const { return handle_; }
  void synchronize() const { must(gpu().driver().cuStreamSynchronize(handle_)); }

 private:
  CUstream handle_ = nullptr;
};

// The work that `body` enqueues in the stream, captured as a graph.
class CallerGraph {
 public:
  CallerGraph(const CallerStream& stream, const std::function<void()>& body) {
    const auto& driver = gpu().driver();
    must(driver.cuStreamBeginCapture(stream.handle(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    body();
    must(driver.cuStreamEndCapture(stream.handle(), &graph_));
    must(driver.cuGraphInstantiateWithFlags(&runnable_, graph_, 0));
    must(driver.cuGraphUpload(runnable_, stream.handle()));
    stream.synchronize();
  }
  CallerGraph(const CallerGraph&) = delete;
  CallerGraph& operator=(const CallerGraph&) = delete;
  ~CallerGraph() {
    gpu().driver().cuGraphExecDestroy(runnable_);
    gpu().driver().cuGraphDestroy(graph_);
  }
  void launch(const CallerStream& stream) const {
    must(gpu().driver().cuGraphLaunch(runnable_, stream.handle()));
  }

 private:
  CUgraph graph_ = nullptr;
  CUgraphExec runnable_ = nullptr;
};

// A tensor in GPU memory.
class GpuTensor {
 public:
  explicit GpuTensor(std::size_t bytes) : bytes_(bytes) {
    if (bytes > 0) must(gpu().driver().cuMemAlloc(&address_, bytes));
  }
  // Wraps memory that another owner allocated.
  GpuTensor(std::shared_ptr<std::byte> memory, std::size_t bytes)
      : address_(reinterpret_cast<CUdeviceptr>(memory.get())),
        bytes_(bytes),
        memory_(std::move(memory)) {}
  GpuTensor(const GpuTensor&) = delete;
  GpuTensor& operator=(const GpuTensor&) = delete;
  ~GpuTensor() {
    if (address_ != 0 && !memory_) gpu().driver().cuMemFree(address_);
  }
  [[nodiscard]] void* data() const { return reinterpret_cast<void*>(address_); }
  void write(std::span<const std::byte> from, CUstream stream) const {
    if (bytes_ == 0) return;
    must(gpu().driver().cuMemcpyHtoDAsync(address_, from.data(), bytes_, stream));
    must(gpu().driver().cuStreamSynchronize(stream));
  }
  void fill(unsigned char value, CUstream stream) const {
    if (bytes_ > 0) must(gpu().driver().cuMemsetD8Async(address_, value, bytes_, stream));
  }
  [[nodiscard]] std::vector<std::byte> read(CUstream stream) const {
    std::vector<std::byte> to(bytes_);
    if (bytes_ > 0) must(gpu().driver().cuMemcpyDtoHAsync(to.data(), address_, bytes_, stream));
    must(gpu().driver().cuStreamSynchronize(stream));
    return to;
  }

 private:
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_ = nullptr;  // the owner of borrowed memory
};

// One rank's tensors of an executable: inputs as given, outputs filled with NaN. With `heap`,
// tensors that peers access lie in that group's memory.
class RankTensors {
 public:
  RankTensors(const Plan& plan, const Executable& executable, int rank, CUstream stream,
              const Group* heap = nullptr)
      : plan_(&plan), rank_(rank), stream_(stream), tensors_(executable.tensors()) {
    for (const LocalTensor& each : tensors_) {
      std::size_t bytes = static_cast<std::size_t>(v1::size_in_bytes(each.dtype));
      for (const std::int64_t extent : each.shape) bytes *= static_cast<std::size_t>(extent);
      if (heap != nullptr && bytes > 0 && each.place == LocalTensor::Place::Heap) {
        memory_.push_back(std::make_unique<GpuTensor>(
            heap->allocate(static_cast<std::int64_t>(bytes)).value(), bytes));
      } else {
        memory_.push_back(std::make_unique<GpuTensor>(bytes));
      }
      arguments_.emplace_back(each.name, dense(memory_.back()->data(), each.dtype, each.shape));
    }
  }

  void give(const Tensors& inputs) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].role == Buffer::Role::In) {
        const Tensor part =
            shard(*plan_, tensors_[i].name, rank_, inputs.at(tensors_[i].name).view()).value();
        memory_[i]->write(part.data, stream_);
      } else {
        memory_[i]->fill(0xff, stream_);
      }
    }
  }
  [[nodiscard]] std::span<const Argument> arguments() const { return arguments_; }
  [[nodiscard]] const LocalTensor& tensor(std::size_t at) const { return tensors_[at]; }
  [[nodiscard]] std::size_t count() const { return tensors_.size(); }
  [[nodiscard]] std::vector<std::byte> read(std::size_t at) const {
    return memory_[at]->read(stream_);
  }

 private:
  const Plan* plan_;
  int rank_;
  CUstream stream_;
  std::vector<LocalTensor> tensors_;
  std::vector<std::unique_ptr<GpuTensor>> memory_;
  std::vector<Argument> arguments_;
};

// Element `at` as a number.
inline double number_at(const std::vector<std::byte>& data, DType dtype, std::size_t at) {
  if (dtype == DType::F32) {
    float value = 0;
    std::memcpy(&value, &data[at * 4], 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, &data[at * 2], 2);
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, 4);
  return value;
}

// Compares a rank's outputs, f32 or bf16, with those of CPU ranks. Kernels round differently, so
// the bound is a share of the largest element.
inline void expect_part(const Plan& plan, int rank, const RankTensors& own,
                        const Tensors& outputs) {
  for (std::size_t i = 0; i < own.count(); ++i) {
    const LocalTensor& each = own.tensor(i);
    if (each.role == Buffer::Role::In) continue;
    const Tensor wanted = shard(plan, each.name, rank, outputs.at(each.name).view()).value();
    const std::vector<std::byte> found = own.read(i);
    ASSERT_EQ(found.size(), wanted.data.size());
    const std::size_t count =
        found.size() / static_cast<std::size_t>(v1::size_in_bytes(each.dtype));
    double largest = 0;
    for (std::size_t at = 0; at < count; ++at) {
      largest = std::max(largest, std::abs(number_at(wanted.data, each.dtype, at)));
    }
    const double bound = largest * 0.02;
    for (std::size_t at = 0; at < count; ++at) {
      const double one = number_at(found, each.dtype, at);
      const double other = number_at(wanted.data, each.dtype, at);
      ASSERT_LE(std::abs(one - other), bound)
          << each.name << " at " << at << " on rank " << rank << ", " << plan.facts().op << " "
          << plan.facts().schedule << ": " << one << " for " << other;
      ASSERT_FALSE(std::isnan(one));
    }
  }
}

// The work of one rank, which has its own thread and stream.
using RankBody = std::function<void(const Group& group, const CallerStream& stream)>;

inline void run_ranks(int ranks, const RankBody& body,
                      std::chrono::milliseconds wait_limit = std::chrono::seconds(20)) {
  std::vector<std::jthread> threads;
  for (auto& exchange : v1::local_exchanges(ranks, std::chrono::seconds(20))) {
    threads.emplace_back([&body, exchange, wait_limit] {
      ASSERT_TRUE(gpu().make_current().ok());
      const CallerStream stream;
      const Checked<Group> group = Group::join({.exchange = exchange,
                                                .gpu = 0,
                                                .heap_bytes = std::int64_t{32} << 20,
                                                .tensor_bytes = std::int64_t{32} << 20,
                                                .wait_limit = wait_limit,
                                                .kernel_cache = kernel_folder(),
                                                .library_folders = {"/usr/local/cuda/lib64"}});
      ASSERT_TRUE(group.ok()) << group.error().text;
      body(*group, stream);
    });
  }
}

inline Tensors run_whole(const Plan& plan, const Tensors& inputs) {
  std::map<std::string, v1::ConstView> views;
  for (const auto& [name, tensor] : inputs) views.emplace(name, tensor.view());
  Checked<v1::RunResult> result = v1::run(plan, views);
  EXPECT_TRUE(result.ok()) << result.error().text;
  return std::move(result->outputs);
}

// The plans of all named schedules that apply.
inline std::vector<Plan> plans_of(Question question) {
  std::vector<Plan> plans;
  for (const v1::ScheduleInfo& schedule : v1::schedules(question).value()) {
    if (schedule.refusal) continue;
    question.schedule = schedule.name;
    Checked<Plan> made = v1::plan(question);
    if (made.ok()) plans.push_back(*std::move(made));
  }
  return plans;
}

}  // namespace harpe::ranks_on_gpus
