#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "exec/cuda/kernels/attention/attention.h"

namespace harpe::cuda {

// Attention of one panel of queries over one chunk of keys, by their indices in a spec.
struct Meeting {
  std::size_t panel = 0;
  std::size_t chunk = 0;
  std::optional<PositionRule> rule;  // none: every query sees every key
};

// Sets positions of the panels and chunks of one kernel at which each meeting sees the same keys as
// alone; the least position is 0. The kernel applies every panel to every chunk, so the mask must
// hide all pairs that do not meet; without a mask all pairs must meet. False if no such positions
// exist: two meetings contradict each other, or a panel would see keys that it does not meet.
// Requires: every panel and every chunk is in a meeting, and no pair meets twice.
[[nodiscard]] bool place_by_rules(AttentionSpec& spec, std::span<const Meeting> meetings);

// Whether no query of the panel sees a key of the chunk.
[[nodiscard]] bool is_hidden(const AttentionSpec& spec, const AttentionPanelSpec& panel,
                             const AttentionChunkSpec& chunk);

}  // namespace harpe::cuda
