#pragma once

#include <cstdint>
#include <optional>

#include "support/lexer.h"

namespace harpe::launch {

// Kinds of lines of a launch plan, in their order: a launch contains kernels, a kernel contains
// Arrival to FusedCopy, and a panel contains Addend and Map.
enum class LineKind : std::uint8_t {
  Header,
  Partials,
  Box,
  Signal,
  Launch,
  Kernel,
  Arrival,
  Panel,
  Addend,
  Map,
  FusedStore,
  FusedCopy,
};

// Consumes the words at the beginning of a line that follows one of kind `last`. Without `last` the
// line must be the Header. Errors: T001, which lists the kinds that may stand there.
[[nodiscard]] Checked<LineKind> take_kind(Cursor& line, std::optional<LineKind> last);

}  // namespace harpe::launch
