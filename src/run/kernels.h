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

// The request to Gpus::list_kernels, and its result.

struct KernelRequest {
  std::vector<std::string> names;  // of kernels or families; empty: all
  bool compile = false;            // and check
  CudaPlaces places;
};

// A shipped kernel and, if it was compiled, the result.
struct KernelRow {
  cuda::KernelVariant variant;
  std::optional<cuda::KernelReport> report = {};
  std::string_view cache = "";      // the cache's action: cuda::CacheUse
  std::vector<Diag> problems = {};  // of the cache: to be reported as warnings
  std::vector<Diag> findings = {};  // violated limits (G030 to G036), or a compile error
};

struct KernelListing {
  std::string compiler;  // "NVRTC 13.0 (libnvrtc.so.13)"; "" if nothing was compiled
  std::vector<KernelRow> rows;
};

}  // namespace harpe
