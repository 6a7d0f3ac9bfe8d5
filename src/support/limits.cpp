#include "support/limits.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace harpe {
namespace {

namespace fs = std::filesystem;

// "`ulimit -u` is 64, "; "" without a limit.
std::string print_limit(__rlimit_resource resource, const std::string& name, rlim_t unit = 1) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return "`ulimit -" + name + "` is " + std::to_string(limit.rlim_cur / unit) + ", ";
}

// The folder of this process's control group: from "0::/user.slice".
std::optional<fs::path> find_group() {
  constexpr std::string_view kUnified = "0::/";
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with(kUnified))
      return fs::path("/sys/fs/cgroup") / line.substr(kUnified.size());
  }
  return std::nullopt;
}

// The limits of this process's control group and its parents, such as a container's.
std::string print_group_limits() {
  const std::optional<fs::path> group = find_group();
  if (!group) return "";
  std::string out;
  for (fs::path at = *group; at.string().starts_with("/sys/fs/cgroup"); at = at.parent_path()) {
    std::string limit;
    if (!(std::ifstream(at / "pids.max") >> limit) || limit == "max") continue;
    out += "`" + (at / "pids.max").string() + "` is " + limit + ", ";
  }
  return out;
}

std::string print_limits(Limited what) {
  constexpr rlim_t kKibibyte = 1024;
  if (what == Limited::Files) return print_limit(RLIMIT_NOFILE, "n");
  std::string out = print_limit(RLIMIT_NPROC, "u") + print_group_limits();
  if (what == Limited::Processes) return out;
  // A thread's stack has the size up to which the main thread's stack may grow.
  return out + print_limit(RLIMIT_STACK, "s", kKibibyte) + print_limit(RLIMIT_AS, "v", kKibibyte);
}

std::string name_of(Limited what) {
  switch (what) {
    case Limited::Threads:
      return "threads";
    case Limited::Processes:
      return "processes";
    case Limited::Files:
      break;
  }
  return "open files";
}

}  // namespace

Diag no_more(Limited what, int error) {
  std::string limits = print_limits(what);
  limits.erase(limits.size() - std::min<std::size_t>(limits.size(), 2));
  return make_diag(DiagCode::X018, {{"what", name_of(what)},
                                    {"reason", std::strerror(error)},
                                    {"limits", limits.empty() ? "no limit is set" : limits}});
}

bool is_out_of_files(int error) { return error == EMFILE || error == ENFILE; }

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace harpe
