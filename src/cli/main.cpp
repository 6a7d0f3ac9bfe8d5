#include <csignal>
#include <exception>
#include <string>

#include "cli/environment.h"
#include "cli/run_command.h"
#include "cli/terminal.h"
#include "support/limits.h"

namespace harpe::cli {
namespace {

// Settings of the whole process, made before its first thread.
void prepare_process() {
  // If a file may not grow, the writing call fails (EFBIG) and its caller removes the file; the
  // default signal would end the process in the middle.
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
