#pragma once

#include <algorithm>
#include <vector>

namespace harpe {

// Mesh axes by index, as short unordered lists.
[[nodiscard]] inline bool meets(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::any_of(a, [&](int x) { return std::ranges::find(b, x) != b.end(); });
}

[[nodiscard]] inline bool is_subset(const std::vector<int>& part, const std::vector<int>& whole) {
  return std::ranges::all_of(part,
                             [&](int x) { return std::ranges::find(whole, x) != whole.end(); });
}

}  // namespace harpe
