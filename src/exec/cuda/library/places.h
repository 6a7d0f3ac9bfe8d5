#pragma once

#include <string>
#include <vector>

#include "exec/cuda/library.h"

namespace harpe::library {

// Where to look for one of NVIDIA's libraries.
struct Search {
  std::string file;                  // this one, and no other; "" as below
  std::vector<std::string> folders;  // with the library, or with wheels: FOLDER/nvidia/*/lib
};

struct Wanted {
  std::string what;                // "NCCL"
  std::vector<std::string> names;  // files, in order of preference
  std::string remedy;              // "install NCCL 2"
};

// The file asked for; else what the process has loaded already; else what the folders have; else
// what the loader finds, and the toolkit's. Errors: G002.
[[nodiscard]] Checked<cuda::Library> open_library(const Wanted& wanted, const Search& search);

}  // namespace harpe::library
