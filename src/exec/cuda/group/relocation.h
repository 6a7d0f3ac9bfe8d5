#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "exec/cuda/kernels/fixed_words.h"
#include "exec/cuda/runtime/graph.h"

namespace harpe::cuda {

// The same work captured twice: `shifted` where the arenas lie so many bytes further on. A word
// that is an address there differs by that; others that look like addresses do not.
struct CapturedTwice {
  CapturedGraph graph;
  CapturedGraph shifted;
  DeviceAddress shift = 0;
};

// Kernels and copies of a captured graph, with the words of their arguments that are addresses in
// homes: in a Graph of it they are set to other places. A tensor map begins with its address.
class Relocation {
 public:
  // `homes`: where each lay when the graph was captured; an empty range is none. Where a node names
  // a home as no change can reach it, its range becomes empty: it has to stay.
  // Requires: nothing else lies in the ranges, and tables in memory name no place there; the
  // graph that is not shifted outlives this. Errors: G005.
  [[nodiscard]] static Checked<Relocation> find(const Device& device, const CapturedTwice& captured,
                                                std::vector<AddressRange>& homes);

  // Where homes that moved `from` there `to` there are named, in runs ordered from now on.
  // Requires: the graph is of the captured one, and works at `from`.
  [[nodiscard]] Result<Ok, CudaError> move(const Graph& graph, std::span<const DeviceAddress> from,
                                           std::span<const DeviceAddress> to) {
    return move(graph.handle(), from, to);
  }
  // The same of the captured graph itself, for what is made of it from now on.
  [[nodiscard]] Result<Ok, CudaError> move_captured(std::span<const DeviceAddress> from,
                                                    std::span<const DeviceAddress> to) {
    return move(CUgraphExec{nullptr}, from, to);
  }

 private:
  struct Word {
    std::size_t home = 0;
    DeviceAddress distance = 0;  // from the home's begin
  };
  struct Argument {
    std::size_t offset = 0;  // bytes, in the kernel's one parameter
    Word word;
  };
  struct KernelNode {
    CUgraphNode node = nullptr;
    CUDA_KERNEL_NODE_PARAMS params{};
    std::vector<std::byte> parameter;
    std::vector<Argument> arguments;
  };
  struct CopyNode {
    CUgraphNode node = nullptr;
    CUDA_MEMCPY3D params{};
    std::optional<Word> from;
    std::optional<Word> to;
  };

  explicit Relocation(Device device) : device_(std::move(device)) {}
  [[nodiscard]] Checked<KernelNode> read_kernel(CUgraphNode node) const;
  [[nodiscard]] Checked<Ok> add_kernel(CUgraphNode node, CUgraphNode shifted, DeviceAddress shift,
                                       const std::vector<AddressRange>& homes);
  [[nodiscard]] Checked<Ok> add_copy(CUgraphNode node, std::vector<AddressRange>& homes);
  // Null: in the captured graph.
  [[nodiscard]] Result<Ok, CudaError> move(CUgraphExec graph, std::span<const DeviceAddress> from,
                                           std::span<const DeviceAddress> to);
  [[nodiscard]] Result<Ok, CudaError> move(CUgraphExec graph, KernelNode& kernel,
                                           std::span<const DeviceAddress> to) const;
  [[nodiscard]] Result<Ok, CudaError> move(CUgraphExec graph, CopyNode& copy,
                                           std::span<const DeviceAddress> to) const;

  Device device_;
  std::vector<KernelNode> kernels_;
  std::vector<CopyNode> copies_;
};

}  // namespace harpe::cuda
