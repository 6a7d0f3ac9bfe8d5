#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "exec/cuda/kernels/fixed_words.h"
#include "exec/cuda/runtime/graph.h"

namespace harpe::cuda {

// The same work captured twice; in `shifted` the arenas lie `shift` bytes higher. A word of a
// kernel argument is an address if it differs by `shift`; words that only look like addresses do
// not.
struct CapturedTwice {
  CapturedGraph graph;
  CapturedGraph shifted;
  DeviceAddress shift = 0;
};

// Kernels and copies of a captured graph, with the words of their arguments that are addresses
// within homes. In a Graph made from it, these words can be set to other places. A tensor map
// begins with its address.
class Relocation {
 public:
  // `homes`: the range of each home when the graph was captured; an empty range is ignored. If a
  // node uses a home in a way that cannot be changed, the home's range becomes empty: it must stay.
  // Requires: nothing else lies in the ranges, and tables in memory contain no address within them;
  // the unshifted graph outlives this. Errors: G005.
  [[nodiscard]] static Checked<Relocation> find(const Device& device, const CapturedTwice& captured,
                                                std::vector<AddressRange>& homes);

  // Changes homes at `from` to `to`, for runs enqueued from now on. Requires: the graph was made
  // from the captured one and currently uses `from`.
  [[nodiscard]] Result<Ok, CudaError> move(const Graph& graph, std::span<const DeviceAddress> from,
                                           std::span<const DeviceAddress> to) {
    return move(graph.handle(), from, to);
  }
  // The same for the captured graph itself, and what is made from it from now on.
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
    std::size_t offset = 0;  // bytes, in the kernel's only parameter
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
