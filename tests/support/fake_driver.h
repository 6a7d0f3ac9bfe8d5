#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/runtime/driver_api.h"

namespace harpe::testing_support {

// What a driver without a GPU says and was asked. Functions of the driver have no place for a state
// of ours, so there is one for the process: reset by make_fake_driver.
struct FakeGpu {
  int devices = 1;
  int compute_major = 9;
  CUresult allocation = CUDA_SUCCESS;  // what asking for memory comes to
  CUresult capture = CUDA_SUCCESS;     // what the end of a capture comes to
  bool are_peers = true;
  std::size_t free_bytes = std::size_t{1} << 40;
  int refuse_at = -1;                     // which resource there is no memory for, in their order
  std::function<CUresult()> on_load{};    // what loading a kernel comes to
  std::function<CUresult()> on_launch{};  // what the launch of a graph comes to
  std::function<CUresult()> on_wait{};    // what waiting for a stream comes to, once one runs

  std::vector<std::string> calls;  // names, in order, of those that change something
  int taken = 0;         // resources: contexts, memory, kernels, streams, events and graphs
  int held = 0;          // of those, what was not given back
  bool is_told = false;  // a signal was written aside
  int graphs_launched = 0;
  std::int64_t shared_bytes = 0;  // allowed to the last kernel
  CUlaunchConfig launch{};        // the last one, without its attributes
  CUlaunchAttribute cluster{};    // its one attribute
  std::uint64_t argument = 0;     // the first 8 bytes of its arguments
};
[[nodiscard]] FakeGpu& fake_gpu();
// FakeGpu::is_told, while other threads call the driver.
[[nodiscard]] bool is_told();

[[nodiscard]] std::shared_ptr<const cuda::DriverApi> make_fake_driver();

}  // namespace harpe::testing_support
