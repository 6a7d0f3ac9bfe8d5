#pragma once

#include <string>
#include <vector>

#include "exec/cuda/runtime/library.h"

namespace harpe::library {

// Where to look for one of NVIDIA's libraries.
struct Search {
  std::string file;                  // this one, and no other; "" as below
  std::vector<std::string> folders;  // with the library, or with wheels: FOLDER/nvidia/*/lib
  std::vector<std::string> toolkits = {"/usr/local/cuda/lib64"};  // after the loader's places
};

struct Wanted {
  std::string what;                // "NCCL"
  std::vector<std::string> names;  // files, in order of preference
  std::string remedy;              // "install NCCL 2"
};

// NVIDIA's, by the names they are asked for everywhere.
[[nodiscard]] Wanted wanted_nccl();
[[nodiscard]] Wanted wanted_cublaslt();
[[nodiscard]] Wanted wanted_cudnn();

// The file asked for; else what the process has loaded already; else what the folders have; else
// what the loader finds, and the toolkits'. Errors: G002.
[[nodiscard]] Checked<cuda::Library> open_library(const Wanted& wanted, const Search& search);

}  // namespace harpe::library
