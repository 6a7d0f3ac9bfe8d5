#pragma once

#include <cstdint>
#include <optional>

#include "ir/blocks.h"
#include "ir/program.h"
#include "ir/visibility.h"

namespace harpe {

enum class Coverage : std::uint8_t { Empty, Partial, Full };

// What the masks of one statement hide by position (program.h), names resolved. Masks on data hide
// more, but which pairs is known at run time only: to blocks they are everywhere partial.
struct ResolvedMask {
  int query_axis = -1;  // index into Blocks::axes
  int key_axis = -1;
  Visibility visible;
};

// None when no mask of the statement goes by position. Requires: check_program.
[[nodiscard]] std::optional<ResolvedMask> resolve_masks(const Blocks& blocks, const Stmt& stmt);

// How much of queries x keys (positions) is visible. An empty interval is Empty.
[[nodiscard]] Coverage classify(const Visibility& visible, Interval queries, Interval keys);

}  // namespace harpe
