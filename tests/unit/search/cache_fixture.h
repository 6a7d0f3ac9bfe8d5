#pragma once

#include "search/cache.h"

namespace harpe {

// A GEMM of m x n x k on two ranks of an invented machine.
[[nodiscard]] Program product(std::int64_t m, std::int64_t n, std::int64_t k);
[[nodiscard]] CacheKey key_of(std::int64_t m, std::int64_t n = 64, std::int64_t k = 32);
// One schedule, `label`ed.
[[nodiscard]] CacheEntry entry_of(CacheKey key, const std::string& label);

}  // namespace harpe
