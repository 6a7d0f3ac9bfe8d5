#pragma once

#include <chrono>

namespace harpe {

using Deadline = std::chrono::steady_clock::time_point;

}  // namespace harpe
