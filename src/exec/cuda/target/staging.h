#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/actions/action.h"

namespace harpe::cuda {

// A move through a dense image of its rows, in their final type: packed on one side, landed on the
// other. If only some rows are used, the image also holds their number, and has space for all.
struct StagedMove {
  actions::Assign pack;
  actions::Assign land;
};

// Size of the image; a multiple of 16.
[[nodiscard]] std::int64_t image_bytes(const actions::Assign& move);

// `here` and `there`: the image's addresses on both sides, aligned to 16 bytes.
[[nodiscard]] StagedMove stage(const actions::Assign& move, std::byte* here, std::byte* there);

}  // namespace harpe::cuda
