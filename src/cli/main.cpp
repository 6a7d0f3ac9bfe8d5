#include <csignal>
#include <exception>
#include <string>

#include "cli/environment.h"
#include "cli/run_command.h"
#include "cli/terminal.h"
#include "support/limits.h"

namespace harpe::cli {
namespace {

// What holds for the whole process, before its first thread.
void prepare_process() {
  // A file that may not grow is an error of the call that writes (EFBIG), after which nothing of it
  // is left, and not a signal that ends the process where it stands.
  std::signal(SIGXFSZ, SIG_IGN);
  raise_file_limit();
  prepare_environment();
}

}  // namespace
}  // namespace harpe::cli

int main(int count, char** words) {
  harpe::cli::prepare_process();
  try {
    return harpe::cli::run_command(count, words);
  } catch (const std::exception& error) {
    harpe::cli::print_error(std::string("bug in harpe: ") + error.what() + "\n");
    return harpe::cli::kBug;
  }
}
