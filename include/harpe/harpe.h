#pragma once

// Harpe as a library: it plans operators for several processors, predicts what a plan costs, and
// executes plans. Start with a Question; plan() makes a Plan for it; run() executes the plan on
// whole tensors, with all ranks in this process. A program that is one rank itself joins a Group
// and launches an Executable on its own part of each tensor. docs/library.md is the guide.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harpe/api.h"
#include "harpe/error.h"
#include "harpe/executable.h"
#include "harpe/group.h"
#include "harpe/plan.h"
#include "harpe/question.h"
#include "harpe/run.h"
#include "harpe/view.h"

namespace harpe {
HARPE_INLINE namespace v1 {
// "0.1.0+3fa29c41d7e0": the version and the build.
[[nodiscard]] HARPE_API std::string version();

// What this machine offers.

struct HostFacts {
  std::string name;  // "AMD EPYC, 2 cores"
  std::int64_t cores = 0;
  std::vector<std::string> vectors;        // "avx2", "avx512f", …
  std::optional<std::int64_t> free_bytes;  // of memory; none if the system does not report it
  // The library that computes GEMMs, by type: {"f32", "oneDNN"}.
  std::vector<std::pair<std::string, std::string>> products;
};
struct GpuFacts {
  std::int64_t id = 0;
  std::string name;
  std::string capability;  // "9.0"
  std::int64_t multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> free_bytes;
  std::vector<bool> peers;  // by GPU: whether this GPU can access that GPU's memory
  std::string problem;      // why kernels cannot run on it; or ""
};
struct LibraryFacts {
  std::string name;     // "NCCL"
  std::string path;     // "" if not found
  std::string version;  // "2.27.3"
  std::string problem;  // why it cannot be used; or ""
  std::string cost;     // what does not work without the library
};
struct TransportFacts {
  std::string name;  // "tcp;ofi_rxm"
  bool is_there = false;
  bool is_tested = false;  // whether this project has tested it on such hardware
  std::string ordering;    // how signals are ordered behind data: "nic fence"
};
struct Doctor {
  HostFacts host;
  std::vector<GpuFacts> gpus;
  std::vector<LibraryFacts> libraries;  // NVIDIA's driver first
  std::vector<TransportFacts> transports;
};
// Changes nothing; uses each GPU for a moment. Searches `library_folders` (folders of libraries, or
// of NVIDIA's Python packages) before the loader's places.
[[nodiscard]] HARPE_API Checked<Doctor> doctor(
    const std::vector<std::string>& library_folders = {});

}  // namespace v1
}  // namespace harpe
