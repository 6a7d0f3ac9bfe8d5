#pragma once

#include <optional>
#include <string>
#include <vector>

namespace harpe {

// Where the CUDA back end finds the files that it opens at run time, and keeps its own.
struct CudaPlaces {
  std::optional<std::string> nvrtc;          // the compiler's library; none: its usual places
  std::vector<std::string> cuda_folders;     // of CUDA's libraries, besides the loader's places
  std::vector<std::string> library_folders;  // of NCCL, cuBLASLt and cuDNN, or of their wheels
  std::optional<std::string> kernel_cache;   // folder of compiled kernels; none: always compile
};

}  // namespace harpe
