#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/library/cublaslt.h"
#include "exec/cuda/library/cudnn.h"
#include "exec/cuda/library/step.h"
#include "exec/cuda/runtime/device_memory.h"
#include "support/ids.h"

namespace harpe::library {

// Whose leaf is made ready, for what is said, and in which queue it runs: what a queue has runs one
// after the other, and shares the memory that products may use while they run.
struct LeafPlace {
  std::string kernel;  // that `patch` named
  std::string nest;
  QueueId queue;
};

// The leaves of one rank that NVIDIA's libraries do. A library is opened when the first asks for
// it. Orders require that the GPU is current for the calling thread, and that this lives.
class Leaves {
 public:
  Leaves(const cuda::Device& device, Search search)
      : device_(&device), search_(std::move(search)) {}

  // Products take the first algorithm that cuBLASLt's heuristics name: the same every time.
  // Requires: engine Library; one piece a panel, nothing waited for or raised. Errors: G083 the
  // library has none for it; G084 no such library; G005, G008.
  [[nodiscard]] Checked<Step> prepare(const cuda::GemmSpec& spec, const LeafPlace& place);
  // The same of attention; its mask is all that cuDNN's has, its results are of its operands' type.
  [[nodiscard]] Checked<Step> prepare(const cuda::AttentionSpec& spec, const LeafPlace& place);

 private:
  [[nodiscard]] Checked<Workspace> workspace_of(QueueId queue);
  [[nodiscard]] Checked<CublasLt> products(const LeafPlace& place);
  [[nodiscard]] Checked<const Cudnn*> attention(const LeafPlace& place);

  const cuda::Device* device_;
  Search search_;
  std::map<QueueId, cuda::DeviceMemory> workspaces_;
  std::vector<cuda::DeviceMemory> spaces_;  // of attention
  std::optional<CublasLt> products_;
  std::optional<Cudnn> attention_;
};

// What cuDNN is to compute for a spec: keys that no query sees are left out. None, and why, where
// it has no such kernel: a state that is carried on or left, a mask that is no band from a corner,
// more than one block of queries or keys.
[[nodiscard]] Result<AttentionShape, Missing> shape_of(const cuda::AttentionSpec& spec);

}  // namespace harpe::library
