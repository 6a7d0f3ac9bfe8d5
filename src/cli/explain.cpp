#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/examples.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "support/option_words.h"

namespace harpe::cli {
namespace {

std::string_view print_verdict(Verdict verdict) {
  switch (verdict) {
    case Verdict::Illegal:
      return "illegal: wrong whatever harpe could do";
    case Verdict::Unproven:
      return "unproven: may be right; the notes say what was tried";
    case Verdict::Unsupported:
      return "unsupported: right, and not built";
  }
  return "";
}

constexpr std::size_t kLongestFile = 24;  // lines of a file that an example shows
constexpr std::size_t kWidth = 96;

// Indents lines by four; lines beyond `most` are only counted.
std::string indent(std::string_view text, std::size_t most = std::string::npos) {
  std::string out;
  std::istringstream lines{std::string(text)};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    if (count < most) out += "    " + line + "\n";
  }
  if (count > most) out += "    ... and " + std::to_string(count - most) + " lines more\n";
  return out;
}

// Broken into lines of at most kWidth, each indented by two.
std::string wrap(std::string_view text) {
  std::string out;
  std::string line = " ";
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = " ";
    }
    line += " " + word;
  }
  return out + line + "\n";
}

// A section of one `.comm` file of the golden tests (tests/golden/case.h).
struct Section {
  std::string title;  // "file NAME", "npy NAME …", "run", "stderr", …
  std::string body;
};

std::vector<Section> split_sections(std::string_view text) {
  constexpr std::string_view kOpen = "--- ";
  std::vector<Section> sections(1);
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kOpen)) {
      sections.push_back({line.substr(kOpen.size()), ""});
    } else {
      sections.back().body += line + "\n";
    }
  }
  return sections;
}

// The files among `sections` that the command names.
std::string print_files(const std::vector<Section>& sections, const std::string& command) {
  std::string out;
  for (const Section& section : sections) {
    const std::size_t space = section.title.find(' ');
    if (!section.title.starts_with("file ") && !section.title.starts_with("npy ")) continue;
    const std::string name =
        section.title.substr(space + 1, section.title.find(' ', space + 1) - space - 1);
    if (command.find(name) == std::string::npos) continue;
    if (section.title.starts_with("file ")) {
      out += "  " + name + ":\n" + indent(section.body, kLongestFile);
    } else {
      out += "  " + section.title.substr(space + 1) + "\n";
    }
  }
  return out;
}

// A refusal with this code from the golden tests, complete: its files, command and output.
std::optional<std::string> find_example(std::string_view code) {
  const std::string mark = "error[" + std::string(code) + "]";
  for (const std::string_view text : example_text::all) {
    if (text.find("\n" + mark) == std::string_view::npos) continue;
    const std::vector<Section> sections = split_sections(text);
    std::string command;
    for (const Section& section : sections) {
      if (section.title == "run") command = section.body;
      if (section.title != "stderr" || section.body.find(mark) == std::string::npos) continue;
      return print_files(sections, command) + indent("$ " + command) + indent(section.body);
    }
  }
  return std::nullopt;
}

// The template without its braces: `{name}` reads as NAME.
std::string plain(std::string_view message) {
  std::string out;
  bool inside = false;
  for (const char c : fill_options(message, print_flag)) {
    if (c == '{' || c == '}') {
      inside = c == '{';
    } else {
      out += inside && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return out;
}

std::string explain(const DiagInfo& diag) {
  std::string out = std::string(diag.name) + ": " + plain(diag.message) + "\n  " +
                    std::string(print_verdict(diag.verdict)) + "\n\n" +
                    wrap(fill_options(diag.meaning, print_flag));
  if (!diag.remedy.empty()) out += wrap("Way out: " + plain(diag.remedy) + ".");
  if (const std::optional<std::string> example = find_example(diag.name)) {
    out += "\n  Example\n" + *example;
  }
  return out;
}

std::string explain_all() {
  std::string out;
  for (const DiagInfo& diag : all_diags()) {
    out += "## " + std::string(diag.name) + "\n\n`" + plain(diag.message) + "`\n\n" +
           fill_options(diag.meaning, print_flag) + "\n";
    if (!diag.remedy.empty()) out += "\nWay out: " + plain(diag.remedy) + ".\n";
    out += "\nVerdict: " + std::string(print_verdict(diag.verdict)) + ".\n";
    if (const std::optional<std::string> example = find_example(diag.name)) {
      out += "\n```\n" + *example + "```\n";
    }
    out += "\n";
  }
  return out;
}

}  // namespace

Checked<int> explain_diagnostic(const CommandLine& line) {
  if (line.has("all") && line.words.empty()) {
    HP_REQUIRE_OK(print_out(explain_all()));
    return kDone;
  }
  if (line.words.empty()) {
    return make_diag(DiagCode::U110, {{"verb", line.verb}, {"what", "a code, such as `F205`"}});
  }
  if (line.words.size() > 1 || line.has("all")) {
    return make_diag(DiagCode::U111, {{"verb", line.verb},
                                      {"what", "code"},
                                      {"text", line.words.size() > 1 ? line.words[1] : "--all"}});
  }
  std::string name = line.words.front();
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] += 'A' - 'a';
  if (const std::optional<DiagCode> code = find_diag(name)) {
    HP_REQUIRE_OK(print_out(explain(info(*code))));
    return kDone;
  }
  std::vector<std::string> known;
  for (const DiagInfo& diag : all_diags()) known.emplace_back(diag.name);
  return make_diag(DiagCode::U115, {{"name", name}, {"hint", suggestion(name, known)}});
}

}  // namespace harpe::cli
