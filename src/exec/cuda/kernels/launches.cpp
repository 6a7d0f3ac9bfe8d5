#include "exec/cuda/kernels/launches.h"

#include <algorithm>

#include "exec/cuda/kernels/loop_nests.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

CUresult enqueue_copy(const DriverApi& driver, const CopyLaunch& copy, CUstream stream) {
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.srcDevice = copy.from;
  rows.srcPitch = static_cast<std::size_t>(copy.from_pitch);
  rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.dstDevice = copy.to;
  rows.dstPitch = static_cast<std::size_t>(copy.to_pitch);
  rows.WidthInBytes = static_cast<std::size_t>(copy.bytes);
  rows.Height = static_cast<std::size_t>(copy.rows);
  return driver.cuMemcpy2DAsync(&rows, stream);
}

// The arguments' table.
void point_at(PlainArgs& args, DeviceAddress table) {
  if (auto* const route = std::get_if<device::RouteArgs>(&args)) {
    route->table = reinterpret_cast<const void*>(table);
  } else if (auto* const move = std::get_if<device::MoveArgs>(&args)) {
    move->places = reinterpret_cast<const device::StridedPlace*>(table);
  } else if (auto* const map = std::get_if<device::MapArgs>(&args)) {
    map->places = reinterpret_cast<const device::StridedPlace*>(table);
  }
}

// A refusal of a library's as what the stream came to.
Result<Ok, CudaError> ordered_by(const char* library, const char* call,
                                 const Checked<Ok>& ordered) {
  if (ordered.ok()) return Ok{};
  return CudaError{.call = call,
                   .status = CUDA_ERROR_UNKNOWN,
                   .name = library,
                   .reason = render_message(ordered.error()),
                   .where = {}};
}

}  // namespace

Checked<Ok> check(const LaunchSpec& spec, int multiprocessors) {
  if (is_by_library(spec)) return Ok{};
  if (const auto* const product = std::get_if<GemmSpec>(&spec)) {
    return check(*product, multiprocessors);
  }
  if (const auto* const heads = std::get_if<AttentionSpec>(&spec)) {
    return check(*heads, multiprocessors);
  }
  if (const auto* const gradients = std::get_if<BackwardSpec>(&spec)) return check(*gradients);
  return Ok{};
}

Checked<std::vector<LaunchSpec>> plan_launches(const LaunchChoice& choice,
                                               const actions::Action& action) {
  return std::visit([&](const auto& one) { return plan(choice, one); }, action);
}

Checked<Launches::Run> Launches::prepare_leaf(const LaunchTools& tools, const LaunchSpec& spec) {
  HP_CHECK(tools.leaves != nullptr, "libraries do leaves of plans alone");
  if (const auto* product = std::get_if<GemmSpec>(&spec)) {
    HP_TRY(library::Step step, tools.leaves->prepare(*product, tools.place));
    return Run{std::move(step)};
  }
  HP_TRY(library::Step step, tools.leaves->prepare(std::get<AttentionSpec>(spec), tools.place));
  return Run{std::move(step)};
}

Checked<Launches::Run> Launches::prepare(const LaunchTools& tools, const LaunchSpec& spec) {
  KernelLibrary& library = tools.kernels;
  const int multiprocessors = tools.multiprocessors;
  if (is_by_library(spec)) return prepare_leaf(tools, spec);
  HP_REQUIRE_OK(check(spec, multiprocessors));
  if (const auto* plain = std::get_if<PlainLaunch>(&spec)) {
    HP_TRY(const LoadedKernel* kernel, library.load(plain_variant(plain->kernel, plain->wide)));
    PlainRun run{.kernel = kernel, .shape = {}, .args = plain->args, .table = {}};
    run.shape.grid[0] = static_cast<std::uint32_t>(plain->blocks);
    run.shape.grid[1] = static_cast<std::uint32_t>(plain->places);
    if (!plain->table.empty()) {
      HP_TRY(DeviceMemory table, DeviceMemory::copy_of(library.device(), plain->table));
      point_at(run.args, table.address());
      run.table = std::make_unique<DeviceMemory>(std::move(table));
    }
    return Run{std::move(run)};
  }
  if (const auto* copy = std::get_if<CopyLaunch>(&spec)) return Run{*copy};
  if (const auto* call = std::get_if<library::NcclCall>(&spec)) return Run{*call};
  if (const auto* product = std::get_if<GemmSpec>(&spec)) {
    const GemmChoice choice = tools.gemm ? *tools.gemm : choose_gemm(*product, multiprocessors);
    HP_TRY(PreparedGemm gemm,
           PreparedGemm::make(library, *product, choice, multiprocessors, tools.sums));
    return Run{std::make_unique<PreparedGemm>(std::move(gemm))};
  }
  if (const auto* gradients = std::get_if<BackwardSpec>(&spec)) {
    HP_TRY(PreparedBackward backward, PreparedBackward::make(library, *gradients, multiprocessors));
    return Run{std::make_unique<PreparedBackward>(std::move(backward))};
  }
  const auto& heads = std::get<AttentionSpec>(spec);
  HP_TRY(PreparedAttention attention,
         PreparedAttention::make(library, heads, choose_attention(heads), multiprocessors));
  return Run{std::make_unique<PreparedAttention>(std::move(attention))};
}

bool Launches::meets_others() const {
  return std::ranges::any_of(
      runs_, [](const Run& run) { return std::holds_alternative<library::NcclCall>(run); });
}

Checked<Ok> Launches::add(const LaunchTools& tools, const LaunchSpec& spec) {
  driver_ = &tools.kernels.device().driver();
  HP_TRY(Run run, prepare(tools, spec));
  runs_.push_back(std::move(run));
  return Ok{};
}

Result<Ok, CudaError> Launches::enqueue(const Run& run, CUstream stream) const {
  if (const auto* plain = std::get_if<PlainRun>(&run)) {
    return std::visit(
        [&](const auto& args) {
          return launch(*driver_, *plain->kernel, plain->shape, stream, args);
        },
        plain->args);
  }
  if (const auto* gemm = std::get_if<std::unique_ptr<PreparedGemm>>(&run)) {
    return (*gemm)->launch(stream);
  }
  if (const auto* attention = std::get_if<std::unique_ptr<PreparedAttention>>(&run)) {
    return (*attention)->launch(stream);
  }
  if (const auto* backward = std::get_if<std::unique_ptr<PreparedBackward>>(&run)) {
    return (*backward)->launch(stream);
  }
  if (const auto* call = std::get_if<library::NcclCall>(&run)) {
    return ordered_by("NCCL", "ncclGroupEnd", call->order(stream));
  }
  if (const auto* step = std::get_if<library::Step>(&run)) {
    return ordered_by("cuBLASLt or cuDNN", "leaf", (*step)(stream));
  }
  const auto& copy = std::get<CopyLaunch>(run);
  if (copy.rows > 1) {
    return cuda_call(*driver_, "cuMemcpy2DAsync", enqueue_copy(*driver_, copy, stream));
  }
  return cuda_call(
      *driver_, "cuMemcpyAsync",
      driver_->cuMemcpyAsync(copy.to, copy.from, static_cast<std::size_t>(copy.bytes), stream));
}

Result<Ok, CudaError> Launches::enqueue(CUstream stream) const {
  for (const Run& run : runs_) {
    if (auto done = enqueue(run, stream); !done.ok()) return done;
  }
  return Ok{};
}

Checked<Ok> add_launches(ActionContext& context, const actions::Action& action,
                         Launches& launches) {
  HP_TRY(const std::vector<LaunchSpec> specs, plan_launches(context.choice, action));
  for (const LaunchSpec& spec : specs) {
    HP_REQUIRE_OK(launches.add(
        {.kernels = context.library, .multiprocessors = context.choice.multiprocessors}, spec));
  }
  return Ok{};
}

}  // namespace harpe::cuda
