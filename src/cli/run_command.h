#pragma once

namespace harpe::cli {

// Runs a command line, whose first word is the program's name, and prints results to standard
// output and errors to standard error. Returns the exit status of the process. A broken invariant
// of Harpe is status 70, with a file that reproduces it.
[[nodiscard]] int run_command(int count, const char* const* words);

}  // namespace harpe::cli
