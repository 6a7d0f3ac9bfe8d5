#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace harpe::cli {

// A command of `harpe`, with its help text.
struct Verb {
  std::string_view name;
  std::string_view operands;  // "OP [P=V ...]"
  std::string_view summary;
  std::string_view example;  // command lines with explanations, one per line
};

[[nodiscard]] std::span<const Verb> all_verbs();

// A command line that is split but not interpreted: every flag belongs to the verb, every flag has
// its value, and no flag that sets a single value is repeated.
struct CommandLine {
  std::string verb;                // "" for `harpe --help` and `harpe --version`
  std::vector<std::string> words;  // operands, in order
  std::map<std::string, std::vector<std::string>, std::less<>>
      flags;                          // by long name, without dashes
  std::optional<std::string> answer;  // text to print instead: help or version

  [[nodiscard]] bool has(std::string_view flag) const { return flags.contains(flag); }
  [[nodiscard]] std::optional<std::string> value(std::string_view flag) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view flag) const;
};

// Errors: U101 to U105, U109.
[[nodiscard]] Checked<CommandLine> parse_command_line(int count, const char* const* words);

}  // namespace harpe::cli
