#pragma once

#include <cstdint>

namespace harpe {

// The result of proving a launch plan: for all inputs and interleavings, two consecutive executions
// finish, and every output block at every home equals the sequential program's (docs/math/verify.md
// 6).
struct LaunchCertificate {
  std::int64_t launches = 0;
  std::int64_t steps = 0;  // of one execution
  std::int64_t signals = 0;
  std::int64_t blocks_checked = 0;  // output blocks at homes
  friend bool operator==(const LaunchCertificate&, const LaunchCertificate&) = default;
};

}  // namespace harpe
