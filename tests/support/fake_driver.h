#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/runtime/driver_api.h"

namespace harpe::testing_support {

// The results and the recorded calls of a driver without a GPU. Driver functions carry no user
// data, so the state is one per process; make_fake_driver resets it.
struct FakeGpu {
  int devices = 1;
  int compute_major = 9;
  CUresult allocation = CUDA_SUCCESS;  // result of an allocation
  CUresult capture = CUDA_SUCCESS;     // result of ending a capture
  bool are_peers = true;
  std::size_t free_bytes = std::size_t{1} << 40;
  int refuse_at = -1;                     // index of the resource whose creation fails
  std::function<CUresult()> on_load{};    // result of loading a kernel
  std::function<CUresult()> on_launch{};  // result of launching a graph
  std::function<CUresult()> on_wait{};    // result of waiting on a stream after a graph launch

  std::vector<std::string> calls;  // names of the state-changing calls, in order
  int taken = 0;                   // created: contexts, memory, kernels, streams, events and graphs
  int held = 0;                    // of those, not yet released
  bool is_told = false;            // a stream write set a signal
  int graphs_launched = 0;
  std::int64_t shared_bytes = 0;  // granted to the last kernel
  CUlaunchConfig launch{};        // the last one, without its attributes
  CUlaunchAttribute cluster{};    // its only attribute
  std::uint64_t argument = 0;     // the first 8 bytes of its arguments
};
[[nodiscard]] FakeGpu& fake_gpu();
// Reads FakeGpu::is_told under the lock, while other threads call the driver.
[[nodiscard]] bool is_told();

[[nodiscard]] std::shared_ptr<const cuda::DriverApi> make_fake_driver();

}  // namespace harpe::testing_support
