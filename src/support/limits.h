#pragma once

#include <cstdint>

#include "support/diag.h"

namespace harpe {

// What the system gives a process only so many of.
enum class Limited : std::uint8_t { Threads, Processes, Files };

// X018: the system refused one more with `error` (an errno). Names the limits that may be the
// reason, as they are now.
[[nodiscard]] Diag no_more(Limited what, int error);

// Whether a call failed because the process, or the system, has too many files open.
[[nodiscard]] bool is_out_of_files(int error);

// As many open files as the hard limit allows: the usual soft limit, 1024, is for programs that
// call select.
void raise_file_limit();

}  // namespace harpe
