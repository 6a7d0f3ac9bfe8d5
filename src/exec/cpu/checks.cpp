#include "exec/cpu/checks.h"

#include <unistd.h>

namespace harpe::cpu {
namespace {

constexpr std::int64_t kMaxTasks = 1'000'000;  // D17

}  // namespace

Checked<Ok> check_size(const Plan& plan, std::int64_t ranks) {
  const auto tasks = static_cast<std::int64_t>(plan.tasks.size());
  if (tasks > kMaxTasks) {
    return make_diag(DiagCode::X010, {{"tasks", tasks}, {"limit", kMaxTasks}});
  }
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const std::int64_t available = sysconf(_SC_PHYS_PAGES) / (kMebibyte / page);
  const std::int64_t rank_bytes = arena_bytes(plan);
  // In floating point, because sizes in a plan file may be arbitrary.
  const double needed =
      static_cast<double>(rank_bytes) / static_cast<double>(kMebibyte) * static_cast<double>(ranks);
  if (needed > static_cast<double>(available)) {
    return make_diag(DiagCode::X005, {{"needed", static_cast<std::int64_t>(needed)},
                                      {"ranks", ranks},
                                      {"available", available}});
  }
  return Ok{};
}

}  // namespace harpe::cpu
