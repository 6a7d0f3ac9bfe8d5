#include "driver/options.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace harpe {
namespace {

// A relative path there is no path (XDG base directory specification), nor is an empty one.
std::string folder_in(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

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
  const std::string environment = folder_in("VIRTUAL_ENV");
  if (environment.empty()) return folders;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(environment + "/lib", ignored)) {
    if (entry.path().filename().string().starts_with("python")) {
      folders.push_back((entry.path() / "site-packages").string());
    }
  }
  return folders;
}

void prepare_cuda_environment() {
  constexpr int kKeep = 0;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeep);
  setenv("CUDA_MODULE_LOADING", "EAGER", kKeep);
}

std::string date_before(std::int64_t days) {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day date(today - std::chrono::days(days));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

}  // namespace harpe
