#pragma once

#include <cstdint>
#include <optional>

#include "support/lexer.h"

namespace harpe::launch {

// Kinds of lines of a launch plan, in the order in which they may stand: a launch holds
// kernels, a kernel Arrival to FusedCopy, and a panel of it Addend and Map.
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

// Takes the words that a line begins with, behind one of kind `last`; none: of
// the first line, the Header. Errors: T001, which lists the
// kinds that may stand there.
[[nodiscard]] Checked<LineKind> take_kind(Cursor& line, std::optional<LineKind> last);

}  // namespace harpe::launch
