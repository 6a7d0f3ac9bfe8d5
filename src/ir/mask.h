#pragma once

#include <cstdint>
#include <optional>

#include "ir/blocks.h"
#include "ir/program.h"
#include "ir/visibility.h"

namespace harpe {

enum class Coverage : std::uint8_t { Empty, Partial, Full };

// The masks by position of one statement (program.h), with names resolved. Masks on data hide more,
// but only known at run time: for blocks they count as partial everywhere.
struct ResolvedMask {
  int query_axis = -1;  // index into Blocks::axes
  int key_axis = -1;
  Visibility visible;
};

// None if no mask of the statement goes by position. Requires: check_program.
[[nodiscard]] std::optional<ResolvedMask> resolve_masks(const Blocks& blocks, const Stmt& stmt);

// How much of queries x keys (positions) is visible. An empty interval is Empty.
[[nodiscard]] Coverage classify(const Visibility& visible, Interval queries, Interval keys);

}  // namespace harpe
