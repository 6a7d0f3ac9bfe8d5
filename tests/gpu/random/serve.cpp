#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/run_command.h"
#include "run/gpus.h"

// serve GPUS: runs the command lines of harpe that standard input brings, one on a line, words
// apart by tabs, in one process. Behind what each says comes a line of the record separator and its
// status. The GPUs' contexts stay: making them takes far longer than what small plans do there.
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
