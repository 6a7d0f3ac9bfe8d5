#include "measure/baselines/baseline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "exec/timestamps.h"
#include "support/check.h"

namespace harpe::library {
namespace {

using cuda::to_diag;

constexpr int kTrials = 5;  // of each way to execute the arithmetic

Checked<Ok> order(const std::vector<Step>& steps, CUstream stream) {
  for (const Step& step : steps) HP_REQUIRE_OK(step(stream));
  return Ok{};
}

// Microseconds per repetition of several in a row.
Checked<double> time_in_a_row(const Member& member, const Step& work, std::int64_t count) {
  HP_TRY(const cuda::Event begin, cuda::Event::create(member.device));
  HP_TRY(const cuda::Event end, cuda::Event::create(member.device));
  HP_REQUIRE_OK(checked(begin.record(member.stream)));
  for (std::int64_t i = 0; i < count; ++i) HP_REQUIRE_OK(work(member.stream.handle()));
  HP_REQUIRE_OK(checked(end.record(member.stream)));
  HP_REQUIRE_OK(checked(member.stream.synchronize()));
  HP_TRY(const double milliseconds, checked(end.milliseconds_since(begin)));
  return milliseconds * 1e3 / static_cast<double>(count);
}

Checked<double> time_way(const Member& member, const Step& way) {
  HP_REQUIRE_OK(way(member.stream.handle()));
  return time_in_a_row(member, way, kTrials);
}

// Skips ways that a library refuses; if all are refused, returns the last refusal.
Checked<Ok> choose_way(const Member& member, Arithmetic& part) {
  double fastest = std::numeric_limits<double>::infinity();
  std::optional<Diag> refusal;
  for (std::size_t i = 0; i < part.ways.size(); ++i) {
    const Checked<double> time = time_way(member, part.ways[i]);
    if (!time.ok()) {
      refusal = time.error();
    } else if (*time < fastest) {
      fastest = *time;
      part.chosen = i;
    }
  }
  if (std::isinf(fastest) && refusal) return *refusal;
  return Ok{};
}

Checked<cuda::Graph> capture(const Member& member, const std::vector<Step>& steps) {
  HP_TRY(cuda::GraphCapture kept, cuda::GraphCapture::begin(member.device, member.stream));
  HP_REQUIRE_OK(order(steps, member.stream.handle()));
  HP_TRY(cuda::Graph graph, kept.end());
  HP_REQUIRE_OK(graph.upload(member.stream));
  return graph;
}

Checked<Ok> choose_ways(const Member& member, Work& work) {
  for (const std::unique_ptr<Arithmetic>& part : work.arithmetic) {
    HP_REQUIRE_OK(choose_way(member, *part));
  }
  return Ok{};
}

// In a graph, as in executions. Launched one by one, many small GEMMs would wait for the host.
Checked<cuda::Graph> capture_arithmetic(const Member& member, const Work& work) {
  if (work.all_arithmetic) return capture(member, {work.all_arithmetic});
  std::vector<Step> steps;
  for (const std::unique_ptr<Arithmetic>& part : work.arithmetic) {
    steps.emplace_back([only = part.get()](CUstream stream) { return only->order(stream); });
  }
  return capture(member, steps);
}

enum class Direction : std::uint8_t { ToGpu, ToHost };

Checked<Ok> copy(const Member& member, const Part& part, std::byte* whole, Direction direction) {
  CUDA_MEMCPY2D rows{};
  const auto pitch = static_cast<std::size_t>(part.rows == 1 ? part.bytes : part.pitch);
  const auto own_pitch =
      static_cast<std::size_t>(part.own_pitch == 0 ? part.bytes : part.own_pitch);
  rows.WidthInBytes = static_cast<std::size_t>(part.bytes);
  rows.Height = static_cast<std::size_t>(part.rows);
  if (direction == Direction::ToGpu) {
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.srcHost = whole + part.offset;
    rows.srcPitch = pitch;
    rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.dstDevice = part.address;
    rows.dstPitch = own_pitch;
  } else {
    rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.srcDevice = part.address;
    rows.srcPitch = own_pitch;
    rows.dstMemoryType = CU_MEMORYTYPE_HOST;
    rows.dstHost = whole + part.offset;
    rows.dstPitch = pitch;
  }
  const cuda::DriverApi& driver = member.device.driver();
  HP_REQUIRE_OK(checked(member.device.make_current()));
  HP_REQUIRE_OK(cuda::driver_call(driver, "cuMemcpy2DAsync",
                                  driver.cuMemcpy2DAsync(&rows, member.stream.handle())));
  return checked(member.stream.synchronize());
}

FaultReport fault_of(const Diag& diag) {
  Fault fault;
  fault.kind = FaultKind::DeviceFailed;
  fault.rank = RankId(0);
  fault.signal = render_message(diag);
  return {fault};
}

}  // namespace

Checked<cuda::DeviceAddress> Work::reserve(const Member& member, std::int64_t bytes) {
  HP_TRY(cuda::DeviceMemory piece, cuda::DeviceMemory::allocate(member.device, bytes));
  memory.push_back(std::move(piece));
  return memory.back().address();
}

Checked<cuda::DeviceAddress> Work::reserve_zeros(const Member& member, std::int64_t bytes) {
  HP_TRY(cuda::DeviceMemory piece, cuda::DeviceMemory::zeros(member.device, bytes / 4));
  memory.push_back(std::move(piece));
  return memory.back().address();
}

Checked<cuda::DeviceAddress> Work::keep(const Member& member, std::span<const std::byte> bytes) {
  HP_TRY(cuda::DeviceMemory piece, cuda::DeviceMemory::copy_of(member.device, bytes));
  memory.push_back(std::move(piece));
  return memory.back().address();
}

const Arithmetic& Work::choose_from(std::vector<Step> ways) {
  HP_CHECK(!ways.empty(), "there is a way to do the arithmetic");
  arithmetic.push_back(std::make_unique<Arithmetic>(Arithmetic{.ways = std::move(ways)}));
  return *arithmetic.back();
}

void Work::add_arithmetic(std::vector<Step> ways) {
  const Arithmetic& part = choose_from(std::move(ways));
  steps.emplace_back([&part](CUstream stream) { return part.order(stream); });
}

Checked<Ok> Baseline::set_input(const std::string& buffer, const HostTensor& tensor) {
  const auto placed = parts_.tensors.find(buffer);
  if (placed == parts_.tensors.end()) return Ok{};  // the libraries do not use this input
  HP_CHECK(tensor.shape == placed->second.shape && tensor.dtype == placed->second.dtype,
           "shape and type of `" + buffer + "`");
  for (const Part& part : placed->second.parts) {
    HP_REQUIRE_OK(copy(team_->member(part.rank), part, const_cast<std::byte*>(tensor.data.data()),
                       Direction::ToGpu));
  }
  return Ok{};
}

// Libraries connect and load kernels in their first calls, which must come before a capture. The
// way is chosen again once the operands are those of an execution.
Checked<Ok> Baseline::prepare() {
  const auto choose = [&](Member& member) { return choose_ways(member, work(member.rank)); };
  const auto warm_up = [&](Member& member) -> Checked<Ok> {
    for (int i = 0; i < 2; ++i) {
      HP_REQUIRE_OK(order(work(member.rank).steps, member.stream.handle()));
    }
    return checked(member.stream.synchronize());
  };
  std::vector<std::optional<cuda::Graph>> graphs(parts_.work.size());
  std::vector<std::optional<cuda::Graph>> arithmetic(parts_.work.size());
  const auto keep = [&](Member& member) -> Checked<Ok> {
    const auto rank = static_cast<std::size_t>(member.rank);
    HP_TRY(graphs[rank], capture(member, work(member.rank).steps));
    HP_TRY(arithmetic[rank], capture_arithmetic(member, work(member.rank)));
    return Ok{};
  };
  HP_REQUIRE_OK(team_->for_all(choose));
  HP_REQUIRE_OK(team_->for_all(warm_up));
  HP_REQUIRE_OK(team_->for_all(choose));
  HP_REQUIRE_OK(team_->for_all(keep));
  for (std::optional<cuda::Graph>& graph : graphs) graphs_.push_back(*std::move(graph));
  for (std::optional<cuda::Graph>& graph : arithmetic) arithmetic_.push_back(*std::move(graph));
  return Ok{};
}

Checked<Baseline::Turns> Baseline::turns_with(std::span<Executor* const> others) {
  Turns turns = {this};
  for (Executor* const other : others) {
    turns.push_back(dynamic_cast<Baseline*>(other));
    HP_CHECK(turns.back() != nullptr && turns.back()->team_ == team_,
             "executors that take turns are alike");
  }
  for (Baseline* const each : turns) {
    if (each->graphs_.empty()) HP_REQUIRE_OK(each->prepare());
  }
  return turns;
}

Result<RunStats, FaultReport> Baseline::run_in_turns(std::span<Executor* const> others,
                                                     const RunOptions& options) {
  const Checked<Turns> turns = turns_with(others);
  if (!turns.ok()) return fault_of(turns.error());
  const Timestamps stamps(options.iterations, options.in_a_row);
  std::vector<std::vector<double>> milliseconds(parts_.work.size());
  const Checked<Ok> done = team_->for_all([&](Member& member) -> Checked<Ok> {
    const auto rank = static_cast<std::size_t>(member.rank);
    std::vector<cuda::Event> ends;
    for (std::int64_t i = 0; i <= stamps.last(); ++i) {
      HP_TRY(cuda::Event event, cuda::Event::create(member.device));
      ends.push_back(std::move(event));
    }
    HP_REQUIRE_OK(checked(ends.front().record(member.stream)));
    for (std::int64_t i = 1; i <= stamps.executions(); ++i) {
      const Baseline& next = *(*turns)[static_cast<std::size_t>(i - 1) % turns->size()];
      HP_REQUIRE_OK(checked(next.graphs_[rank].launch(member.stream)));
      if (const auto at = stamps.behind(i)) {
        HP_REQUIRE_OK(checked(ends[static_cast<std::size_t>(*at)].record(member.stream)));
      }
    }
    HP_REQUIRE_OK(checked(member.stream.synchronize()));
    for (std::size_t i = 1; i < ends.size(); ++i) {
      HP_TRY(const double took, checked(ends[i].milliseconds_since(ends[i - 1])));
      const auto executions = stamps.executions_until(static_cast<std::int64_t>(i));
      milliseconds[rank].push_back(took / static_cast<double>(executions));
    }
    return Ok{};
  });
  if (!done.ok()) return fault_of(done.error());
  RunStats stats;
  for (std::size_t i = 0; i < milliseconds.front().size(); ++i) {
    double longest = 0;
    for (const std::vector<double>& rank : milliseconds) longest = std::max(longest, rank[i]);
    stats.iterations.emplace_back(std::llround(longest * 1e6));
  }
  return stats;
}

Result<double, FaultReport> Baseline::time_in_graph(std::span<Executor* const> others,
                                                    std::int64_t count,
                                                    std::chrono::milliseconds /*wait_limit*/) {
  constexpr std::int64_t kReplays = 2;
  const Checked<Turns> turns = turns_with(others);
  if (!turns.ok()) return fault_of(turns.error());
  std::vector<double> times(parts_.work.size(), 0);
  const Checked<Ok> done = team_->for_all([&](Member& member) -> Checked<Ok> {
    std::vector<Step> steps;
    for (std::int64_t i = 0; i < count; ++i) {
      Baseline& next = *(*turns)[static_cast<std::size_t>(i) % turns->size()];
      const std::vector<Step>& own = next.work(member.rank).steps;
      steps.insert(steps.end(), own.begin(), own.end());
    }
    HP_TRY(const cuda::Graph chain, capture(member, steps));
    const Step replay = [&](CUstream) { return checked(chain.launch(member.stream)); };
    HP_REQUIRE_OK(replay(member.stream.handle()));  // waits for ranks that begin later
    HP_TRY(times[static_cast<std::size_t>(member.rank)], time_in_a_row(member, replay, kReplays));
    return Ok{};
  });
  if (!done.ok()) return fault_of(done.error());
  return std::ranges::max(times) / static_cast<double>(count);
}

Checked<HostTensor> Baseline::output(const std::string& buffer) const {
  const Placed& placed = parts_.tensors.at(buffer);
  HostTensor tensor = make_tensor(placed.dtype, placed.shape);
  for (const Part& part : placed.parts) {
    HP_REQUIRE_OK(copy(team_->member(part.rank), part, tensor.data.data(), Direction::ToHost));
  }
  return tensor;
}

std::int64_t Baseline::allocated_bytes() const {
  std::int64_t most = 0;
  for (const std::unique_ptr<Work>& work : parts_.work) {
    std::int64_t bytes = 0;
    for (const cuda::DeviceMemory& piece : work->memory) bytes += piece.bytes();
    most = std::max(most, bytes);
  }
  return most;
}

Checked<double> Baseline::time_arithmetic(std::int64_t executions) {
  std::vector<double> times(parts_.work.size(), 0);
  HP_REQUIRE_OK(team_->for_all([&](Member& member) -> Checked<Ok> {
    const auto rank = static_cast<std::size_t>(member.rank);
    const Step replay = [&](CUstream) { return checked(arithmetic_[rank].launch(member.stream)); };
    HP_TRY(times[rank], time_in_a_row(member, replay, executions));
    return Ok{};
  }));
  return std::ranges::max(times);
}

}  // namespace harpe::library
