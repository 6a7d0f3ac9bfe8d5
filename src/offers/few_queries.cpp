#include "offers/few_queries.h"

namespace harpe {

std::int64_t bunch_of(std::int64_t parts) {
  constexpr std::int64_t kAtOnce = 9;
  if (parts <= kAtOnce) return parts;
  std::int64_t bunch = 4;
  while (bunch * bunch < parts) ++bunch;
  return bunch;
}

std::int64_t joined_in_turn(std::int64_t parts) {
  const std::int64_t bunch = bunch_of(parts);
  return bunch - 1 + (parts - 1) / bunch;
}

bool has_bunches(std::int64_t parts) { return bunch_of(parts) < parts; }

}  // namespace harpe
