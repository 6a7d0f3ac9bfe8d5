#include "exec/cuda/kernels/plain/plain_launch.h"
#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {
namespace {

using device::MapArgs;
using device::MoveArgs;
using device::StridedPlace;

// Sets the address of the arguments' table.
void point_at(PlainArgs& args, DeviceAddress table) {
  if (auto* const route = std::get_if<device::RouteArgs>(&args)) {
    route->table = pointer_to<const void>(table);
  } else if (auto* const move = std::get_if<MoveArgs>(&args)) {
    move->places = pointer_to<const StridedPlace>(table);
  } else if (auto* const map = std::get_if<MapArgs>(&args)) {
    map->places = pointer_to<const StridedPlace>(table);
  }
}

class PreparedPlain final : public PreparedKernel {
 public:
  static Checked<std::unique_ptr<PreparedKernel>> make(KernelLibrary& library,
                                                       const PlainLaunch& plain) {
    auto made = std::make_unique<PreparedPlain>();
    made->driver_ = &library.device().driver();
    HP_TRY(made->kernel_, library.load(plain_variant(plain.kernel, plain.wide)));
    made->args_ = plain.args;
    made->shape_.grid[0] = static_cast<std::uint32_t>(plain.blocks);
    made->shape_.grid[1] = static_cast<std::uint32_t>(plain.places);
    made->shape_.begins_early = plain.kernel == PlainKernel::AddRmsNorm;
    if (!plain.table.empty()) {
      HP_TRY(made->table_, DeviceMemory::copy_of(library.device(), plain.table));
      point_at(made->args_, made->table_->address());
    }
    return std::unique_ptr<PreparedKernel>(std::move(made));
  }

  Result<Ok, CudaError> launch(CUstream stream) const override {
    return std::visit(
        [&](const auto& args) { return cuda::launch(*driver_, *kernel_, shape_, stream, args); },
        args_);
  }

 private:
  const DriverApi* driver_ = nullptr;
  const LoadedKernel* kernel_ = nullptr;
  LaunchShape shape_;
  PlainArgs args_;
  std::optional<DeviceMemory> table_;  // if the arguments point at a table
};

}  // namespace

Checked<std::unique_ptr<PreparedKernel>> prepare_plain(const KernelLaunch& launch,
                                                       const LaunchTools& tools) {
  const auto* const spec = find_spec<PlainLaunch>(launch);
  if (spec == nullptr) return std::unique_ptr<PreparedKernel>();
  return PreparedPlain::make(tools.kernels, *spec);
}

}  // namespace harpe::cuda
