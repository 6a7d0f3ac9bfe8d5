#pragma once

#include <cstdint>

// The kernel for attention of few queries, as far as choices and predictions need it.
namespace harpe {

// The keys of a pair of sequence and head group are cut into parts, and their states are joined:
// each bunch of consecutive parts by the thread block with its last one, then the bunches by the
// block with the last part.
[[nodiscard]] std::int64_t bunch_of(std::int64_t parts);

// The states that are joined one after the other until the pair has its result. Requires: at least
// one part.
[[nodiscard]] std::int64_t joined_in_turn(std::int64_t parts);

// Whether there are several bunches: then the last block waits for states that others have joined.
[[nodiscard]] bool has_bunches(std::int64_t parts);

}  // namespace harpe
