#include "run/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "ir/program.h"
#include "support/print_bytes.h"

namespace harpe {

std::int64_t bytes_to_run(const Plan& plan, bool check) {
  double bytes = static_cast<double>(arena_bytes(plan)) * static_cast<double>(plan.mesh.ranks());
  for (const Buffer* buffer : buffers_of(plan.program)) {
    double elements = 1;
    for (const std::int64_t extent : shape_of(plan.program, *buffer)) {
      elements *= static_cast<double>(extent);
    }
    if (buffer->role != Role::Temp)
      bytes += elements * static_cast<double>(size_in_bytes(buffer->dtype));
    if (!check) continue;
    // The reference: everything in f64, and the scales of computed buffers.
    const double numbers = buffer->role == Role::In ? 1 : 2;
    bytes += numbers * elements * static_cast<double>(size_in_bytes(DType::F64));
  }
  constexpr double kLargest = 9e18;  // any sum above 64 bits is refused anyway
  return static_cast<std::int64_t>(std::min(bytes, kLargest));
}

std::optional<std::int64_t> available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::int64_t kibibytes = 0;
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

Checked<Ok> check_memory(std::string_view what, std::int64_t needed) {
  const std::optional<std::int64_t> available = available_bytes();
  if (!available || needed <= *available) return Ok{};
  return make_diag(
      DiagCode::I502,
      {{"what", what}, {"needed", print_bytes(needed)}, {"available", print_bytes(*available)}});
}

}  // namespace harpe
