#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/runtime/driver_api.h"

namespace harpe::testing_support {

// A kernel, copy or memset as a graph has it.
struct RecordedNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::byte> parameter;  // the kernel's
  CUDA_MEMCPY3D copy{};
  std::uint64_t set = 0;  // where a memset begins

  // What `kernel` points at, where the node lies now.
  void* argument = nullptr;
};

// What a thread asked of a driver without a GPU that keeps graphs, and where its memory lies:
// handed out one behind the other from `memory` on. All that is not said here is the fake driver's
// (fake_driver.h).
struct Recording {
  std::vector<std::string> calls;  // of the thread, those that order or make something
  // The nodes of the graph that it launched last, or put into a capture.
  std::vector<RecordedNode> launched;
  std::uint64_t memory = std::uint64_t{1} << 40;
  CUcontext current = nullptr;
  bool is_captured = false;  // what the thread orders in streams is
  int graphs = 0;            // instantiated, less those destroyed
  int allocations = 0;       // likewise
};
[[nodiscard]] Recording& recording();

// Resets the thread's recording, and the fake GPU.
[[nodiscard]] std::shared_ptr<const cuda::DriverApi> make_recording_driver();

}  // namespace harpe::testing_support
