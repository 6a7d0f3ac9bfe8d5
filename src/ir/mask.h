#pragma once

#include <cstdint>
#include <optional>

#include "ir/blocks.h"
#include "ir/program.h"
#include "ir/visibility.h"

namespace harpe {

enum class Coverage : std::uint8_t { Empty, Partial, Full };

// The masks of one statement together (program.h says what each hides), names resolved.
struct ResolvedMask {
  int query_axis = -1;  // index into Blocks::axes
  int key_axis = -1;
  Visibility visible;
};

// None when the statement has no mask. Requires: check_program.
[[nodiscard]] std::optional<ResolvedMask> resolve_masks(const Blocks& blocks, const Stmt& stmt);

// How much of queries x keys (positions) is visible. An empty interval is Empty.
[[nodiscard]] Coverage classify(const Visibility& visible, Interval queries, Interval keys);

}  // namespace harpe
