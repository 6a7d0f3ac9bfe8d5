#pragma once

#include <vector>

#include "launch/draft.h"

namespace harpe::launch {

// Finds f32 partial states that kernels store in 16 bits at once: every reader rounds them to that
// type, and at least one reader is a copy or an exchange. Precondition: only copies, exchanges and
// roundings read them, none by a put; the kernels that make them store each once, whole, and can
// store that type (Offers::choose). Order: unchanged. Data: half the bytes are sent. Rounding: one,
// where the state is made instead of where it is read.
// Errors: those of Offers::kernels_of.
[[nodiscard]] Checked<std::vector<AllocId>> find_partials16(const Plan& plan, Offers& offers);

}  // namespace harpe::launch
