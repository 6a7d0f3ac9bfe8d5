#include "machine/fence.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

constexpr std::array<std::string_view, 6> kFences = {"put", "dest", "nic", "batch", "epoch", "imm"};

}  // namespace

std::string_view print(Fence fence) { return kFences.at(static_cast<std::size_t>(fence)); }

std::optional<Fence> parse_fence(std::string_view text) {
  const auto* const found = std::ranges::find(kFences, text);
  if (found == kFences.end()) return std::nullopt;
  return static_cast<Fence>(found - kFences.begin());
}

}  // namespace harpe
