#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/actions/action.h"
#include "exec/actions/view.h"

namespace harpe::actions {

// One rank's home of a buffer, and the moves between it and a whole tensor.
struct HomeMoves {
  RankId rank;
  std::int64_t part = 0;      // coordinate along the buffer's partial axes; 0 if it has none
  bool is_copy = false;       // a lower rank's home of the same part holds the same
  std::int64_t elements = 0;  // of the home
  std::vector<Assign> assigns;
};

enum class Direction : std::uint8_t { ToHomes, ToTensor };

// `whole`: a dense tensor of the buffer's type, in the order of its dimensions, that the moves can
// access. By ascending rank.
[[nodiscard]] std::vector<HomeMoves> home_moves(const Setting& setting, const std::string& buffer,
                                                std::byte* whole, Direction direction);

// The buffer's table. Requires: there is such a buffer.
[[nodiscard]] const BufferTable& table_of(const Setting& setting, const std::string& buffer);

}  // namespace harpe::actions
