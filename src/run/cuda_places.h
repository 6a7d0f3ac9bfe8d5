#pragma once

#include <optional>
#include <string>
#include <vector>

namespace harpe {

// Where the CUDA back end finds, at run time, what it opens and keeps.
struct CudaPlaces {
  std::optional<std::string> nvrtc;          // the compiler's library; else where it usually is
  std::vector<std::string> cuda_folders;     // of CUDA's libraries, beside the loader's places
  std::vector<std::string> library_folders;  // with NCCL, cuBLASLt and cuDNN, or with their wheels
  std::optional<std::string> kernel_cache;   // folder of compiled kernels; none: compile anew
};

}  // namespace harpe
