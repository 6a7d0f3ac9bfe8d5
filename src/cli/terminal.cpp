#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "io/files.h"
#include "support/option_words.h"
#include "support/printable.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kSchema = 1;  // of every object that `--json` writes
constexpr std::string_view kWipe = "\r\033[K";

bool has_terminal() { return ::isatty(STDERR_FILENO) == 1; }

// True if everything was written; a full disk may be reported only when the buffer is flushed.
bool write(std::FILE* stream, std::string_view text) {
  const bool is_taken = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  return std::fflush(stream) == 0 && is_taken;
}

// All output may contain text from users and files.
bool show(std::FILE* stream, std::string_view text) {
  return write(stream, make_lines_printable(text));
}

// Quoted as one word for a shell.
std::string quote(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == std::string::npos) {
    return word;
  }
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

bool is_switch(std::string_view name) {
  const auto flag = std::ranges::find(kFlags, name, &Flag::name);
  return flag != kFlags.end() && flag->value.empty();
}

// The files that a flag's values name. `-` is none if it means standard output.
std::vector<OutputFile> files_of(const Flag& flag, const std::vector<std::string>& values) {
  const std::string name = "--" + std::string(flag.name);
  std::vector<OutputFile> files;
  for (const std::string& value : values) {
    if (value == "-" && flag.value.ends_with("|-")) continue;
    // NAME=FILE if the flag may be repeated.
    const std::size_t equals = flag.repeats ? value.find('=') : std::string::npos;
    if (equals == std::string::npos) {
      files.push_back({name, value});
    } else {
      files.push_back({name + " " + value.substr(0, equals), value.substr(equals + 1)});
    }
  }
  return files;
}

Diag no_standard_output(const std::string& what) {
  return make_diag(
      DiagCode::U109,
      {{"flag", what}, {"text", "-"}, {"wanted", "the name of a file (`./-` for one called so)"}});
}

}  // namespace

std::string print_flag(std::string_view option, std::string_view value) {
  const auto* const other = std::ranges::find(kOptionFlags, option, &OptionFlag::option);
  std::string flag(other == kOptionFlags.end() ? option : other->flag);
  std::ranges::replace(flag, '_', '-');
  return "--" + flag + (value.empty() ? "" : " ") + std::string(value);
}

std::string print_diag(const Diag& diag, std::string_view severity) {
  return render(diag, severity, print_flag);
}

std::string print_message(const Diag& diag) { return render_message(diag, print_flag); }

int exit_status_of(const Diag& diag) {
  // A process has exited or never connected, or the system refused a resource.
  if (diag.code == DiagCode::N010 || diag.code == DiagCode::X018) return kFault;
  return info(diag.code).name.starts_with('U') ? kUsage : kRefused;
}

Checked<Ok> print_out(std::string_view text) {
  show_progress("");
  if (show(stdout, text)) return Ok{};
  return make_diag(DiagCode::I102, {{"path", "standard output"}, {"reason", std::strerror(errno)}});
}

void print_error(std::string_view text) {
  show_progress("");
  static_cast<void>(show(stderr, text));  // a failure here cannot be reported
}

void print_warning(const Diag& diag) { print_error(print_diag(diag, "warning") + "\n"); }

void show_progress(std::string_view text) {
  if (!has_terminal()) return;
  static_cast<void>(write(stderr, std::string(kWipe) + make_printable(text)));
}

std::string print_rows(const Rows& rows) {
  std::vector<std::vector<std::string>> lines;
  for (const auto& [name, value] : rows) lines.push_back({name, value});
  return print_table(lines);
}

std::string print_table(const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> lines = given;
  for (std::vector<std::string>& line : lines) {
    for (std::string& cell : line) cell = make_printable(cell);
  }
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const std::vector<std::string>& line : lines) {
    std::string text = " ";
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += fmt::format(" {:<{}}", line[i], i + 1 == line.size() ? 0 : widths[i] + 1);
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string print_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string print_time(Picoseconds time) { return print_seconds(time.seconds()); }

std::string print_us(double microseconds) { return print_seconds(microseconds * 1e-6); }

std::string print_command(const CommandLine& line) {
  std::string out = "harpe " + line.verb;
  for (const std::string& word : line.words) out += " " + quote(word);
  for (const auto& [flag, values] : line.flags) {
    for (const std::string& value : values) {
      out += " --" + flag;
      if (!is_switch(flag)) out += " " + quote(value);
    }
  }
  return out;
}

Json start_json(const CommandLine& line) { return {{"schema", kSchema}, {"command", line.verb}}; }

Json subject_to_json(const CommandLine& line) {
  return {{"target", line.words.front()},
          {"parameters", std::vector(line.words.begin() + 1, line.words.end())}};
}

void announce(std::string_view path) { print_error("wrote `" + make_printable(path) + "`\n"); }

void announce_files_of(const CommandLine& line, std::string_view name) {
  const auto flag =
      std::ranges::find_if(kFlags, [&](const Flag& one) { return one.name == name && one.writes; });
  HP_CHECK(flag != kFlags.end(), "no flag `" + std::string(name) + "` writes a file");
  for (const OutputFile& file : files_of(*flag, line.values(name))) announce(file.path);
}

Checked<Ok> write_file_of(const CommandLine& line, std::string_view flag, std::string_view text) {
  const std::optional<std::string> path = line.value(flag);
  if (!path) return Ok{};
  HP_REQUIRE_OK(write_text(*path, text));
  announce(*path);
  return Ok{};
}

Checked<Ok> check_places(const CommandLine& line) {
  std::vector<OutputFile> files;
  for (const auto& [name, values] : line.flags) {
    const auto flag = std::ranges::find(kFlags, name, &Flag::name);
    if (flag == kFlags.end() || !flag->writes) continue;
    for (OutputFile& file : files_of(*flag, values)) {
      if (file.path == "-") return no_standard_output(file.what);
      files.push_back(std::move(file));
    }
  }
  const bool exports = line.verb == "cache" && line.words.size() == 2 && line.words[0] == "export";
  if (exports && line.words[1] == "-") return no_standard_output("cache export");
  if (exports) files.push_back({"cache export", line.words[1]});
  return check_output_files(files);
}

Checked<Ok> show_results(const CommandLine& line, std::string_view text, const Json& json) {
  if (line.value("json") == "-") return print_out(print_json(json) + "\n");
  const Checked<Ok> shown = print_out(text);
  HP_REQUIRE_OK(write_file_of(line, "json", print_json(json) + "\n"));
  return shown;
}

}  // namespace harpe::cli
