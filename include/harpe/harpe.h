#pragma once

// Harpe as a library: plans of operators that several processors compute together, what they cost,
// and their execution. Start with a Question; plan() makes a Plan of it; run() executes that on
// whole tensors, with all ranks in this process. Programs that are ranks themselves join a Group
// and launch an Executable on what each of them holds. docs/library.md is the guide.

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
// "0.1.0+3fa29c41d7e0": the version and which build of it this is.
[[nodiscard]] HARPE_API std::string version();

// What this machine can do.

struct HostFacts {
  std::string name;  // "AMD EPYC, 2 cores"
  std::int64_t cores = 0;
  std::vector<std::string> vectors;        // "avx2", "avx512f", …
  std::optional<std::int64_t> free_bytes;  // of memory; none where the system does not say
  // What multiplies matrices, by type: {"f32", "oneDNN"}.
  std::vector<std::pair<std::string, std::string>> products;
};
struct GpuFacts {
  std::int64_t id = 0;
  std::string name;
  std::string capability;  // "9.0"
  std::int64_t multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> free_bytes;
  std::vector<bool> peers;  // by GPU: whether this one can access its memory
  std::string problem;      // why kernels do not run on it; or ""
};
struct LibraryFacts {
  std::string name;     // "NCCL"
  std::string path;     // "" where it was not found
  std::string version;  // "2.27.3"
  std::string problem;  // why it cannot be used; or ""
  std::string cost;     // what does not work without it
};
struct TransportFacts {
  std::string name;  // "tcp;ofi_rxm"
  bool is_there = false;
  bool is_tested = false;  // on such hardware, by this project
  std::string ordering;    // how signals are ordered behind data: "nic fence"
};
struct Doctor {
  HostFacts host;
  std::vector<GpuFacts> gpus;
  std::vector<LibraryFacts> libraries;  // NVIDIA's driver first
  std::vector<TransportFacts> transports;
};
// Changes nothing; uses each GPU for a moment. Looks for NVIDIA's libraries in these folders (of
// libraries or of their Python packages) before the loader's places.
[[nodiscard]] HARPE_API Checked<Doctor> doctor(
    const std::vector<std::string>& library_folders = {});

}  // namespace v1
}  // namespace harpe
