#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace harpe {

// The back end that runs the ranks.
enum class Backend : std::uint8_t { Cpu, Cuda };
[[nodiscard]] constexpr std::string_view print(Backend backend) {
  return backend == Backend::Cuda ? "cuda" : "cpu";
}

// Where a time was measured. Times of other sites do not apply.
struct Site {
  Backend backend = Backend::Cpu;
  std::string processor;  // "NVIDIA H200", "AMD EPYC, 2 cores"; "" where there is no GPU
  friend bool operator==(const Site&, const Site&) = default;
};

}  // namespace harpe
