#pragma once

#include <cstdint>

#include "support/diag.h"

namespace harpe {

// Resources of which the system gives a process a limited number.
enum class Limited : std::uint8_t { Threads, Processes, Files };

// X018: the system refused one more, with `error` (an errno). Names the current limits that may be
// the cause.
[[nodiscard]] Diag no_more(Limited what, int error);

// True if a call failed because the process, or the system, has too many open files.
[[nodiscard]] bool is_out_of_files(int error);

// Raises the limit of open files to the hard limit. The usual soft limit, 1024, is for programs
// that call select.
void raise_file_limit();

}  // namespace harpe
