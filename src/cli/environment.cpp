#include "cli/environment.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace harpe::cli {
namespace {

// Relative and empty paths are ignored (XDG base directory specification).
std::string folder_in(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

// Folders of Python packages: of the active environment, and of those in PATH. NVIDIA's wheels keep
// their libraries there.
std::vector<std::string> python_folders() {
  namespace fs = std::filesystem;
  std::vector<fs::path> roots;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string root = folder_in(variable); !root.empty()) roots.emplace_back(root);
  }
  const char* const path = std::getenv("PATH");
  std::istringstream places(path == nullptr ? "" : path);
  for (std::string place; std::getline(places, place, ':');) {
    if (fs::path(place).filename() == "bin") roots.push_back(fs::path(place).parent_path());
  }
  std::vector<std::string> folders;
  std::error_code ignored;
  for (const fs::path& root : roots) {
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "lib", ignored)) {
      const fs::path folder = entry.path() / "site-packages";
      const bool is_python = entry.path().filename().string().starts_with("python3");
      if (!is_python || !fs::exists(folder, ignored)) continue;
      if (std::ranges::find(folders, folder.string()) == folders.end()) folders.push_back(folder);
    }
  }
  return folders;
}

}  // namespace

void prepare_environment() {
  // OpenBLAS starts threads when it is opened; Harpe calls it from its own threads, with one each.
  constexpr int kReplace = 1;
  ::setenv("OPENBLAS_NUM_THREADS", "1", kReplace);
  constexpr int kKeep = 0;
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeep);
  ::setenv("CUDA_MODULE_LOADING", "EAGER", kKeep);
  ::setenv("NCCL_NVLS_ENABLE", "0", kKeep);
}

Checked<std::string> cache_folder(const std::optional<std::string>& given, std::string_view flag) {
  if (given) return *given;
  if (const std::string cache = folder_in("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/harpe";
  if (const std::string home = folder_in("HOME"); !home.empty()) return home + "/.cache/harpe";
  return make_diag(
      DiagCode::U152,
      {{"reason", "neither `XDG_CACHE_HOME` nor `HOME` is an absolute path"}, {"flag", flag}});
}

Checked<std::optional<std::string>> cache_of(const std::optional<std::string>& given,
                                             std::string_view flag) {
  if (given == "off") return std::optional<std::string>();
  HP_TRY(std::string folder, cache_folder(given, flag));
  return std::optional<std::string>(std::move(folder));
}

std::vector<std::string> cuda_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string home = folder_in(variable); !home.empty()) {
      folders.push_back(home + "/lib64");
      folders.push_back(home + "/lib");
    }
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

std::vector<std::string> library_folders(const std::optional<std::string>& given) {
  std::vector<std::string> folders;
  const char* const variable = std::getenv("HARPE_LIBRARIES");
  std::stringstream list(given.value_or(variable == nullptr ? "" : variable));
  for (std::string folder; std::getline(list, folder, ',');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  const std::vector<std::string> packages = python_folders();
  folders.insert(folders.end(), packages.begin(), packages.end());
  return folders;
}

std::string secret_of_environment() {
  const char* const secret = std::getenv("HARPE_SECRET");
  return secret == nullptr ? "" : secret;
}

Checked<std::optional<processes::Launch>> launch_of_environment() {
  const auto read = [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  auto launch = processes::find_launch(read);
  if (!launch.ok()) {
    return make_diag(DiagCode::N016,
                     {{"variable", launch.error().variable}, {"reason", launch.error().reason}});
  }
  if (*launch && (*launch)->ranks == 1) return std::optional<processes::Launch>();
  if (*launch && read("HARPE_LAUNCH")) {  // this program started itself (cli/processes.cpp)
    (*launch)->ranks_by = "--launch";
    (*launch)->local_ranks_by = "--hosts";
  }
  return *std::move(launch);
}

}  // namespace harpe::cli
