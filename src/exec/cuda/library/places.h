#pragma once

#include <string>
#include <vector>

#include "exec/cuda/runtime/library.h"

namespace harpe::library {

// Where to look for a library of NVIDIA's.
struct Search {
  std::string file;                  // only this file; "": as below
  std::vector<std::string> folders;  // of the library, or of wheels: FOLDER/nvidia/*/lib
  std::vector<std::string> toolkits = {"/usr/local/cuda/lib64"};  // tried after the loader's places
};

struct Wanted {
  std::string what;                // "NCCL"
  std::vector<std::string> names;  // files, in order of preference
  std::string remedy;              // "install NCCL 2"
};

// NVIDIA's libraries under their usual names.
[[nodiscard]] Wanted wanted_nccl();
[[nodiscard]] Wanted wanted_cublaslt();
[[nodiscard]] Wanted wanted_cudnn();

// Opens the requested file, if any; else the library that the process has already loaded; else the
// one in the folders; else the one that the loader finds; else the toolkits'. Errors: G002.
[[nodiscard]] Checked<cuda::Library> open_library(const Wanted& wanted, const Search& search);

}  // namespace harpe::library
