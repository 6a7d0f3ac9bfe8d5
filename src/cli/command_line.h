#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace harpe::cli {

// A command of `harpe` with what its help says.
struct Verb {
  std::string_view name;
  std::string_view operands;  // "OP [P=V ...]"
  std::string_view summary;
  std::string_view example;  // command lines with what they do, one a line
};

[[nodiscard]] std::span<const Verb> all_verbs();

// One command line, taken apart but not yet understood: every flag is one the verb has, no flag
// lacks its value, and none that sets one thing is there twice.
struct CommandLine {
  std::string verb;                // "" for `harpe --help` and `harpe --version`
  std::vector<std::string> words;  // operands, in order
  std::map<std::string, std::vector<std::string>, std::less<>>
      flags;                          // by long name, without dashes
  std::optional<std::string> answer;  // text to print and be done: help or version

  [[nodiscard]] bool has(std::string_view flag) const { return flags.contains(flag); }
  [[nodiscard]] std::optional<std::string> value(std::string_view flag) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view flag) const;
};

// Errors: U101 to U105, U109.
[[nodiscard]] Checked<CommandLine> parse_command_line(int count, const char* const* words);

}  // namespace harpe::cli
