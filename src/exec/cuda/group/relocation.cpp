#include "exec/cuda/group/relocation.h"

#include <algorithm>
#include <cstring>

#include "support/check.h"

namespace harpe::cuda {
namespace {

// Index of the home that contains the address.
std::optional<std::size_t> home_at(const std::vector<AddressRange>& homes, DeviceAddress address) {
  const auto found =
      std::ranges::find_if(homes, [&](const AddressRange& home) { return home.holds(address); });
  if (found == homes.end()) return std::nullopt;
  return static_cast<std::size_t>(found - homes.begin());
}

// Only such copies can be changed in an instantiated graph.
bool is_in_one_piece(const CUDA_MEMCPY3D& copy) { return copy.Height <= 1 && copy.Depth <= 1; }

}  // namespace

Checked<Relocation> Relocation::find(const Device& device, const CapturedTwice& captured,
                                     std::vector<AddressRange>& homes) {
  const DriverApi& driver = device.driver();
  if (driver.cuFuncGetParamInfo == nullptr) std::ranges::fill(homes, AddressRange{});
  Relocation relocation(device);
  HP_TRY(const std::vector<CUgraphNode> nodes, captured.graph.nodes());
  HP_TRY(const std::vector<CUgraphNode> shifted, captured.shifted.nodes());
  HP_CHECK(nodes.size() == shifted.size(), "the same work is captured twice");
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    CUgraphNodeType type{};
    HP_REQUIRE_OK(
        driver_call(driver, "cuGraphNodeGetType", driver.cuGraphNodeGetType(nodes[at], &type)));
    if (type == CU_GRAPH_NODE_TYPE_MEMCPY) HP_REQUIRE_OK(relocation.add_copy(nodes[at], homes));
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      HP_REQUIRE_OK(relocation.add_kernel(nodes[at], shifted[at], captured.shift, homes));
    }
  }
  // Later copies may have forced homes to stay.
  const auto stays = [&](const Word& word) {
    return homes[word.home].begin == homes[word.home].end;
  };
  for (KernelNode& kernel : relocation.kernels_) {
    std::erase_if(kernel.arguments, [&](const Argument& argument) { return stays(argument.word); });
  }
  for (CopyNode& copy : relocation.copies_) {
    if (copy.from && stays(*copy.from)) copy.from.reset();
    if (copy.to && stays(*copy.to)) copy.to.reset();
  }
  std::erase_if(relocation.kernels_,
                [](const KernelNode& kernel) { return kernel.arguments.empty(); });
  std::erase_if(relocation.copies_, [](const CopyNode& copy) { return !copy.from && !copy.to; });
  return relocation;
}

// Our kernels have one parameter. Kernels of libraries have others, and access no such home.
Checked<Relocation::KernelNode> Relocation::read_kernel(CUgraphNode node) const {
  const DriverApi& driver = device_.driver();
  KernelNode kernel{.node = node, .params = {}, .parameter = {}, .arguments = {}};
  HP_REQUIRE_OK(driver_call(driver, "cuGraphKernelNodeGetParams",
                            driver.cuGraphKernelNodeGetParams(node, &kernel.params)));
  const CUDA_KERNEL_NODE_PARAMS& params = kernel.params;
  if (params.func == nullptr || params.kernelParams == nullptr) return kernel;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuFuncGetParamInfo",
                            driver.cuFuncGetParamInfo(params.func, 0, &offset, &bytes)));
  const auto* const begin = static_cast<const std::byte*>(params.kernelParams[0]);
  kernel.parameter.assign(begin, begin + bytes);
  return kernel;
}

Checked<Ok> Relocation::add_kernel(CUgraphNode node, CUgraphNode shifted, DeviceAddress shift,
                                   const std::vector<AddressRange>& homes) {
  if (device_.driver().cuFuncGetParamInfo == nullptr) return Ok{};
  HP_TRY(KernelNode kernel, read_kernel(node));
  HP_TRY(const KernelNode there, read_kernel(shifted));
  HP_CHECK(kernel.parameter.size() == there.parameter.size(), "the same kernel is captured twice");
  constexpr std::size_t kBytes = sizeof(DeviceAddress);
  for (std::size_t at = 0; at + kBytes <= kernel.parameter.size(); at += kBytes) {
    DeviceAddress address = 0;
    DeviceAddress address_there = 0;
    std::memcpy(&address, &kernel.parameter[at], kBytes);
    std::memcpy(&address_there, &there.parameter[at], kBytes);
    const auto home = home_at(homes, address);
    if (!home || address_there != address + shift) continue;
    kernel.arguments.push_back(
        {.offset = at, .word = {.home = *home, .distance = address - homes[*home].begin}});
  }
  if (!kernel.arguments.empty()) kernels_.push_back(std::move(kernel));
  return Ok{};
}

Checked<Ok> Relocation::add_copy(CUgraphNode node, std::vector<AddressRange>& homes) {
  const DriverApi& driver = device_.driver();
  CopyNode copy{.node = node, .params = {}, .from = {}, .to = {}};
  HP_REQUIRE_OK(driver_call(driver, "cuGraphMemcpyNodeGetParams",
                            driver.cuGraphMemcpyNodeGetParams(node, &copy.params)));
  const auto find = [&](DeviceAddress address) -> std::optional<Word> {
    const auto home = home_at(homes, address);
    if (!home) return std::nullopt;
    if (is_in_one_piece(copy.params)) {
      return Word{.home = *home, .distance = address - homes[*home].begin};
    }
    homes[*home] = {};
    return std::nullopt;
  };
  copy.from = find(copy.params.srcDevice);
  copy.to = find(copy.params.dstDevice);
  if (copy.from || copy.to) copies_.push_back(copy);
  return Ok{};
}

Result<Ok, CudaError> Relocation::move(CUgraphExec graph, std::span<const DeviceAddress> from,
                                       std::span<const DeviceAddress> to) {
  const auto moves = [&](const Word& word) { return from[word.home] != to[word.home]; };
  for (KernelNode& kernel : kernels_) {
    const bool is_named = std::ranges::any_of(
        kernel.arguments, [&](const Argument& argument) { return moves(argument.word); });
    if (is_named) HP_REQUIRE_OK(move(graph, kernel, to));
  }
  for (CopyNode& copy : copies_) {
    const bool is_named = (copy.from && moves(*copy.from)) || (copy.to && moves(*copy.to));
    if (is_named) HP_REQUIRE_OK(move(graph, copy, to));
  }
  return Ok{};
}

Result<Ok, CudaError> Relocation::move(CUgraphExec graph, KernelNode& kernel,
                                       std::span<const DeviceAddress> to) const {
  for (const auto& [offset, word] : kernel.arguments) {
    const DeviceAddress address = to[word.home] + word.distance;
    std::memcpy(&kernel.parameter[offset], &address, sizeof(address));
  }
  void* parameter = kernel.parameter.data();
  kernel.params.kernelParams = &parameter;
  const DriverApi& driver = device_.driver();
  if (graph == nullptr) {
    return cuda_call(driver, "cuGraphKernelNodeSetParams",
                     driver.cuGraphKernelNodeSetParams(kernel.node, &kernel.params));
  }
  return cuda_call(driver, "cuGraphExecKernelNodeSetParams",
                   driver.cuGraphExecKernelNodeSetParams(graph, kernel.node, &kernel.params));
}

Result<Ok, CudaError> Relocation::move(CUgraphExec graph, CopyNode& copy,
                                       std::span<const DeviceAddress> to) const {
  if (copy.from) copy.params.srcDevice = to[copy.from->home] + copy.from->distance;
  if (copy.to) copy.params.dstDevice = to[copy.to->home] + copy.to->distance;
  const DriverApi& driver = device_.driver();
  if (graph == nullptr) {
    return cuda_call(driver, "cuGraphMemcpyNodeSetParams",
                     driver.cuGraphMemcpyNodeSetParams(copy.node, &copy.params));
  }
  return cuda_call(
      driver, "cuGraphExecMemcpyNodeSetParams",
      driver.cuGraphExecMemcpyNodeSetParams(graph, copy.node, &copy.params, device_.context()));
}

}  // namespace harpe::cuda
