#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/actions/action.h"

namespace harpe::cuda {

// A move through a dense image of its rows, in the type that they end in: packed on one side,
// landed on the other. Of rows of which only some are used the image holds their number too, and
// room for all.
struct StagedMove {
  actions::Assign pack;
  actions::Assign land;
};

// Of the image; a multiple of 16.
[[nodiscard]] std::int64_t image_bytes(const actions::Assign& move);

// `here` and `there` are where the image lies on both sides, aligned to 16 bytes.
[[nodiscard]] StagedMove stage(const actions::Assign& move, std::byte* here, std::byte* there);

}  // namespace harpe::cuda
