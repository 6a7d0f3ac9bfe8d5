#include "exec/cuda/runtime/library.h"

#include <dlfcn.h>

#include <filesystem>

namespace harpe::cuda {
namespace {

// Every file to try: names for the loader to resolve, then each name in each folder.
std::vector<std::string> files_of(const LibraryPlaces& places) {
  std::vector<std::string> files = places.names;
  for (const std::string& folder : places.folders) {
    for (const std::string& name : places.names) {
      if (name.find('/') == std::string::npos)
        files.push_back(std::filesystem::path(folder) / name);
    }
  }
  return files;
}

}  // namespace

Checked<Library> Library::open(const LibraryPlaces& places) {
  Diag refusal = make_diag(DiagCode::G002, {{"what", places.what}, {"remedy", places.remedy}});
  for (const std::string& file : files_of(places)) {
    void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) return Library(handle, file);
    refusal.notes.emplace_back(::dlerror());
  }
  return refusal;
}

Checked<void*> Library::find(const std::string& symbol) const {
  void* const address = ::dlsym(handle_, symbol.c_str());
  if (address == nullptr) {
    return make_diag(DiagCode::G003, {{"path", path_}, {"symbol", symbol}});
  }
  return address;
}

}  // namespace harpe::cuda
