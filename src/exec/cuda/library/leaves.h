#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/cuda/library/cublaslt.h"
#include "exec/cuda/library/cudnn.h"
#include "exec/cuda/runtime/device_memory.h"
#include "support/ids.h"

namespace harpe::library {

// Whose leaf is made ready, for what is said, and in which queue it runs: what a queue has runs one
// after the other, and shares the memory that products may use while they run.
struct LeafPlace {
  std::string kernel;  // that `patch` named
  std::string nest;
  QueueId queue;

  // G083: the library has no kernel for it.
  [[nodiscard]] Diag refuse(const std::string& reason) const;
};

// What NVIDIA's libraries need to do leaves of one rank. A library is opened when the first asks
// for it. Orders require that the GPU is current for the calling thread, and that this lives.
class Leaves {
 public:
  Leaves(const cuda::Device& device, Search search)
      : device_(&device), search_(std::move(search)) {}

  // With memory of the queue. Errors: G084 no such library; G005, G008.
  [[nodiscard]] Checked<CublasLt> products(const LeafPlace& place);
  // Errors: G084 no such library.
  [[nodiscard]] Checked<const Cudnn*> attention(const LeafPlace& place);
  // For one leaf. Errors: G005, G008.
  [[nodiscard]] Checked<cuda::DeviceAddress> reserve(std::int64_t bytes);

 private:
  [[nodiscard]] Checked<Workspace> workspace_of(QueueId queue);

  const cuda::Device* device_;
  Search search_;
  std::map<QueueId, cuda::DeviceMemory> workspaces_;
  std::vector<cuda::DeviceMemory> spaces_;
  std::optional<CublasLt> products_;
  std::optional<Cudnn> attention_;
};

}  // namespace harpe::library
