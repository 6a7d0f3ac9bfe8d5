#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/diag.h"

namespace harpe::cuda {

// Where a library may be, and the message if it is missing.
struct LibraryPlaces {
  std::string what;                  // "NVRTC, the CUDA run-time compiler"
  std::vector<std::string> names;    // files, in order of preference; one with a `/` is a path
  std::vector<std::string> folders;  // searched after the loader's own places
  std::string remedy;                // "install the CUDA toolkit, or name …"
};

// A shared library opened at run time: nothing of NVIDIA's is linked. It is never unloaded, because
// these libraries keep threads and thread-local state that would not survive it.
class Library {
 public:
  // Errors: G002, with a note for each place that was tried.
  [[nodiscard]] static Checked<Library> open(const LibraryPlaces& places);

  // The file that was found, as the loader resolved it.
  [[nodiscard]] const std::string& path() const { return path_; }

  // To be cast to the symbol's type. Errors: G003.
  [[nodiscard]] Checked<void*> find(const std::string& symbol) const;

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace harpe::cuda
