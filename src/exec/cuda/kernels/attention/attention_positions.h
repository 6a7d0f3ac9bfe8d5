#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "exec/cuda/kernels/attention/attention.h"

namespace harpe::cuda {

// Attention of one panel of queries over one chunk of keys, by their places in a spec.
struct Meeting {
  std::size_t panel = 0;
  std::size_t chunk = 0;
  std::optional<PositionRule> rule;  // none: all is seen
};

// Gives the panels and chunks of one kernel positions at which each meeting sees what it sees
// alone, the least of them 0. The kernel meets every panel with every chunk: where nothing is
// masked, all of them meet; a mask hides what does not meet. False where there are no such
// positions: meetings contradict each other, or a panel would see keys that it does not meet.
// Requires: every panel and chunk meets, no two of them twice.
[[nodiscard]] bool place_by_rules(AttentionSpec& spec, std::span<const Meeting> meetings);

// Whether no query of the panel sees a key of the chunk.
[[nodiscard]] bool is_hidden(const AttentionSpec& spec, const AttentionPanelSpec& panel,
                             const AttentionChunkSpec& chunk);

}  // namespace harpe::cuda
