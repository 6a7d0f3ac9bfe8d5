#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/jit/resources.h"
#include "run/cuda_places.h"
#include "support/diag.h"

namespace harpe {

// What Gpus::list_kernels is asked, and says.

struct KernelRequest {
  std::vector<std::string> names;  // of kernels or families; none: all
  bool compile = false;            // and check
  CudaPlaces places;
};

// A shipped kernel and, where it was compiled, what came of it.
struct KernelRow {
  cuda::KernelVariant variant;
  std::optional<cuda::KernelReport> report = {};
  std::string_view cache = "";      // what it did: cuda::CacheUse
  std::vector<Diag> problems = {};  // of the cache: to be shown as warnings
  std::vector<Diag> findings = {};  // what it may not be (G030 to G036), or why it does not compile
};

struct KernelListing {
  std::string compiler;  // "NVRTC 13.0 (libnvrtc.so.13)"; "" where nothing was compiled
  std::vector<KernelRow> rows;
};

}  // namespace harpe
