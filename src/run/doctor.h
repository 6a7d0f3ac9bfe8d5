#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/cuda_places.h"

namespace harpe {

// What does not work without a driver, or in a build without the back end.
constexpr std::string_view kNoRunsOnGpus = "plans do not run on GPUs";

struct HostFacts {
  std::string name;  // "AMD EPYC, 2 cores"
  std::int64_t cores = 0;
  std::vector<std::string> vectors;  // "avx2", "avx512f", …
  std::optional<std::int64_t> free_bytes;
  // The library for GEMMs of each type: "f32", "oneDNN".
  std::vector<std::pair<std::string, std::string>> products;
};

struct GpuFacts {
  std::int64_t id = 0;
  std::string name;
  std::string capability;  // "9.0"
  std::int64_t multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> free_bytes;
  std::vector<bool> peers;             // by GPU: whether this one can access its memory
  std::optional<std::string> problem;  // why kernels do not run on it
};

// A library that is opened at run time.
struct LibraryFacts {
  std::string name;                    // "NCCL"
  std::string path;                    // "" if it is missing
  std::string version;                 // "2.27.3"
  std::optional<std::string> problem;  // why it cannot be used
  std::vector<std::string> tried;      // the loader's message for each place
  std::string cost;                    // what does not work without it
};

// A transport between ranks in processes of their own (docs/transport.md).
struct TransportFacts {
  std::string name;        // "tcp;ofi_rxm"
  bool is_tested = false;  // on such hardware, by this project
  bool is_there = false;
  std::string asked;     // "in-order writes, fence"
  std::string given;     // what it returned
  std::string ordering;  // how its signals are ordered: "nic fence"
};

struct Examination {
  HostFacts host;
  std::vector<TransportFacts> transports;
  std::vector<LibraryFacts> libraries;  // NVIDIA's driver first
  std::vector<GpuFacts> gpus;
};

// What this machine can do. Changes nothing, but briefly creates a context on each GPU that it may
// use.
[[nodiscard]] Examination examine(const CudaPlaces& places);

}  // namespace harpe
