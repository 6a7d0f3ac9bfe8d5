#pragma once

namespace harpe::cli {

// Does what a command line asks for, the program's name first, and says on standard output and
// error what came of it; the status that the process should exit with. A broken invariant of ours
// is status 70, with a file that reproduces it.
[[nodiscard]] int run_command(int count, const char* const* words);

}  // namespace harpe::cli
