#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/run_command.h"
#include "run/gpus.h"

// serve GPUS: runs harpe's command lines from standard input in one process, one per line, with
// words separated by tabs. After the output of each it prints a line of the record separator and
// the status. It keeps the GPUs' contexts, since making them takes far longer than running small
// plans.
namespace {

int run(const std::string& line) {
  std::vector<std::string> words = {"harpe"};
  std::istringstream rest(line);
  for (std::string word; std::getline(rest, word, '\t');) words.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return harpe::cli::run_command(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

int main(int count, char** words) {
  harpe::cli::prepare_environment();
  const int gpus = count > 1 ? std::atoi(words[1]) : 0;
  const auto back_end = harpe::find_gpus();
  harpe::Checked<harpe::FreeMemory> contexts = harpe::FreeMemory();
  if (back_end.ok() && gpus > 0) contexts = (*back_end)->watch_memory(gpus);
  for (std::string line; std::getline(std::cin, line);) {
    const int status = run(line);
    std::cout << '\x1e' << status << std::endl;
  }
  return contexts.ok() ? 0 : 1;
}
