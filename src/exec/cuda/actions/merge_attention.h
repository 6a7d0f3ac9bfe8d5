#pragma once

#include <optional>
#include <span>

#include "exec/cuda/actions/merge.h"

namespace harpe::cuda {

// Keys in turn, with the state of each panel of queries carried from one launch to the next, as one
// launch: panels and chunks in the order in which they first appear. The kernel meets every panel
// with every chunk, so none where it would see keys that no launch brings to the panel.
[[nodiscard]] std::optional<AttentionSpec> merge_attention(
    std::span<const ArrivingLaunch> launches);

}  // namespace harpe::cuda
