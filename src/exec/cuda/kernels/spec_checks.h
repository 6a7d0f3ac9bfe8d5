#pragma once

#include <cstdint>
#include <string_view>

#include "support/diag.h"

namespace harpe::cuda {

// Errors: G062 `count` of `what` is not in [least, most].
[[nodiscard]] Checked<Ok> check_count(std::string_view what, std::int64_t count, std::int64_t least,
                                      std::int64_t most);

}  // namespace harpe::cuda
