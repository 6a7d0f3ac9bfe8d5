#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/runtime/driver_api.h"

namespace harpe::testing_support {

// A kernel, copy or memset node of a graph.
struct RecordedNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::byte> parameter;  // first parameter of the kernel
  CUDA_MEMCPY3D copy{};
  std::uint64_t set = 0;  // address of a memset

  // The target of `kernel.kernelParams`, at the node's current address.
  void* argument = nullptr;
};

// The calls of one thread to a driver without a GPU that keeps graphs. Memory is handed out
// consecutively from `memory` on. The fake driver does everything else (fake_driver.h).
struct Recording {
  std::vector<std::string> calls;  // of this thread: those that create or order something
  // The nodes of the graph that the thread last launched or added to a capture.
  std::vector<RecordedNode> launched;
  std::uint64_t memory = std::uint64_t{1} << 40;
  CUcontext current = nullptr;
  bool is_captured = false;  // the thread's streams are being captured
  int graphs = 0;            // instantiated and not destroyed
  int allocations = 0;       // made and not freed
};
[[nodiscard]] Recording& recording();

// Resets this thread's recording and the fake GPU.
[[nodiscard]] std::shared_ptr<const cuda::DriverApi> make_recording_driver();

}  // namespace harpe::testing_support
