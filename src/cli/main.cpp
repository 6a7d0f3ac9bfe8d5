#include <exception>
#include <string>

#include "cli/run_command.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

int main(int count, char** words) {
  try {
    return harpe::cli::run_command(count, words);
  } catch (const std::exception& error) {
    harpe::cli::print_error(std::string("bug in harpe: ") + error.what() + "\n");
    return harpe::cli::kBug;
  }
}
