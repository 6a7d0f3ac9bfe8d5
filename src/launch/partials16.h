#pragma once

#include <vector>

#include "launch/draft.h"

namespace harpe::launch {

// Partial states of f32 that kernels store in 16 bits at once: everybody who reads them rounds them
// so, and at least one on the way to another rank.
// Precondition: copies, exchanges and roundings read them alone, none by a put; the kernels that
// make them store each once, whole, and can in that type (choose).
// Order: as it is. Data: half the bytes cross. Rounding: one either way, where they are made.
// Errors: those of Offers::kernels_of.
[[nodiscard]] Checked<std::vector<AllocId>> find_partials16(const Plan& plan, Offers& offers);

}  // namespace harpe::launch
