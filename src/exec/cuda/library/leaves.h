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

// The leaf, for messages, and its queue. Leaves of a queue run one after the other and share the
// workspace of GEMMs.
struct LeafPlace {
  std::string kernel;  // named by `patch`
  std::string nest;
  QueueId queue;

  // G083: the library has no kernel for the leaf.
  [[nodiscard]] Diag refuse(const std::string& reason) const;
};

// What NVIDIA's libraries need to run leaves of one rank. Opens a library on first use. Enqueuing
// requires that the GPU is current for the calling thread, and that this lives.
class Leaves {
 public:
  Leaves(const cuda::Device& device, Search search)
      : device_(&device), search_(std::move(search)) {}

  // With the queue's workspace. Errors: G084 the library is missing; G005, G008.
  [[nodiscard]] Checked<CublasLt> products(const LeafPlace& place);
  // Errors: G084 the library is missing.
  [[nodiscard]] Checked<const Cudnn*> attention(const LeafPlace& place);
  // Memory for one leaf. Errors: G005, G008.
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
