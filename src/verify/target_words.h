#pragma once

#include <algorithm>
#include <string_view>

namespace harpe::verifier {

// Whether a target such as "h200 sms 132 shared turns" contains the word. `shared`: ranks share
// GPUs; `turns`: other plans use the ranks' memory between executions.
[[nodiscard]] inline bool says(std::string_view target, std::string_view word) {
  while (!target.empty()) {
    const std::size_t end = std::min(target.find(' '), target.size());
    if (target.substr(0, end) == word) return true;
    target.remove_prefix(std::min(end + 1, target.size()));
  }
  return false;
}

}  // namespace harpe::verifier
