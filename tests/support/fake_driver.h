#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/driver_api.h"

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

  std::vector<std::string> calls;  // names, in order, of those that change something
  std::int64_t shared_bytes = 0;   // allowed to the last kernel
  CUlaunchConfig launch{};         // the last one, without its attributes
  CUlaunchAttribute cluster{};     // its one attribute
  std::uint64_t argument = 0;      // the first 8 bytes of its arguments
};
[[nodiscard]] FakeGpu& fake_gpu();

[[nodiscard]] std::shared_ptr<const cuda::DriverApi> make_fake_driver();

}  // namespace harpe::testing_support
