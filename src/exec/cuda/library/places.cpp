#include "exec/cuda/library/places.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

namespace harpe::library {
namespace {

namespace fs = std::filesystem;

// The folder and, if it contains wheels, the folders of their libraries.
std::vector<fs::path> expand(const fs::path& folder) {
  std::vector<fs::path> folders = {folder};
  std::error_code ignored;
  for (const fs::directory_entry& wheel : fs::directory_iterator(folder / "nvidia", ignored)) {
    folders.push_back(wheel.path() / "lib");
  }
  std::sort(folders.begin() + 1, folders.end());
  return folders;
}

std::vector<std::string> files_of(const Wanted& wanted, const Search& search) {
  if (!search.file.empty()) return {search.file};
  std::vector<std::string> files;
  for (const std::string& name : wanted.names) {
    if (::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr) files.push_back(name);
  }
  for (const std::string& folder : search.folders) {
    for (const fs::path& place : expand(folder)) {
      for (const std::string& name : wanted.names) {
        std::error_code ignored;
        if (fs::exists(place / name, ignored)) files.push_back((place / name).string());
      }
    }
  }
  files.insert(files.end(), wanted.names.begin(), wanted.names.end());
  return files;
}

}  // namespace

Wanted wanted_nccl() {
  return {
      .what = "NCCL", .names = {"libnccl.so.2"}, .remedy = "install NCCL 2, or name its folder"};
}

Wanted wanted_cublaslt() {
  return {.what = "cuBLASLt",
          .names = {"libcublasLt.so.13", "libcublasLt.so.12"},
          .remedy = "install the CUDA toolkit, or name its folder"};
}

Wanted wanted_cudnn() {
  return {
      .what = "cuDNN", .names = {"libcudnn.so.9"}, .remedy = "install cuDNN 9, or name its folder"};
}

Checked<cuda::Library> open_library(const Wanted& wanted, const Search& search) {
  return cuda::Library::open({.what = wanted.what,
                              .names = files_of(wanted, search),
                              .folders = search.toolkits,
                              .remedy = wanted.remedy});
}

}  // namespace harpe::library
