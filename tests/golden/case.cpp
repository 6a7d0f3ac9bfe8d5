#include "tests/golden/case.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace harpe::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOpen = "--- ";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// The value of a `KEY=VALUE` word of a section line; a value in braces ends at the closing one.
std::string option(const std::string& line, const std::string& key, const std::string& otherwise) {
  const std::string open = " " + key + "=";
  const std::size_t at = line.find(open);
  if (at == std::string::npos) return otherwise;
  const std::size_t begin = at + open.size();
  if (line[begin] == '{') return line.substr(begin, line.find('}', begin) - begin + 1);
  return line.substr(begin, line.find(' ', begin) - begin);
}

void write_npy(const fs::path& folder, const std::string& section) {
  std::istringstream words(section);
  std::string kind;
  std::string name;
  words >> kind >> name;
  const std::string header = option(section, "header", "");
  const std::string version = option(section, "version", "1.0");
  const std::string length = option(section, "length", std::to_string(header.size()));
  std::string text = option(section, "magic", "\x93NUMPY");
  text += static_cast<char>(version[0] - '0');
  text += static_cast<char>(version[2] - '0');
  const int bytes = version[0] == '1' ? 2 : 4;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(std::stoul(length) >> (8 * i) & 0xffU);
  const std::string fill = option(section, "fill", "00");
  const std::size_t size = std::stoul(option(section, "bytes", "0"));
  std::string data;
  for (std::size_t i = 0; i < size; ++i) {
    data += static_cast<char>(std::stoul(fill.substr(i * 2 % fill.size(), 2), nullptr, 16));
  }
  write(folder / name, text + header + data);
}

Run run(const std::string& command, const fs::path& folder) {
  // Captured output is written beside the folder, so that a case can list the folder's contents.
  const std::string out = folder.string() + ".out";
  const std::string err = folder.string() + ".err";
  write(folder.string() + ".sh", command + "\n");
  const std::string line = "cd '" + folder.string() + "' && XDG_CACHE_HOME='" + folder.string() +
                           ".cache' PATH='" HARPE_BINARY_DIR ":'\"$PATH\" /bin/sh '" +
                           folder.string() + ".sh' >'" + out + "' 2>'" + err + "' </dev/null";
  const int status = std::system(line.c_str());
  return {.command = command,
          .exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = mask(read(out)),
          .err = mask(read(err))};
}

}  // namespace

std::string mask(const std::string& text) {
  static const std::regex kTime(R"(\b[0-9]+(\.[0-9]+)? (ns|us|ms|s)\b)");
  static const std::regex kFree(R"(\b[0-9]+(\.[0-9]+)? [KMGT]?i?B are free)");
  static const std::regex kError(R"(\berror [0-9]\.[0-9]+e[+-][0-9]+)");
  const std::string timeless = std::regex_replace(text, kTime, "<time>");
  return std::regex_replace(std::regex_replace(timeless, kFree, "<memory> are free"), kError,
                            "error <error>");
}

Case parse_case(const std::string& text) {
  Case out;
  std::string* target = &out.comment;
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (!line.starts_with(kOpen)) {
      *target += line + "\n";
      continue;
    }
    const auto fail = [&](const std::string& what) {
      throw std::runtime_error("line " + std::to_string(number) + ": " + what);
    };
    const std::string section = line.substr(kOpen.size());
    const std::string kind = section.substr(0, section.find(' '));
    if (kind == "file" || kind == "npy" || kind == "run") {
      out.steps.push_back({.section = section, .body = {}, .run = {}});
      target = kind == "run" ? &out.steps.back().run.command : &out.steps.back().body;
      continue;
    }
    if (out.steps.empty() || out.steps.back().section != "run")
      fail("no `run` before `" + kind + "`");
    Run& last = out.steps.back().run;
    if (kind == "exit") {
      last.exit = std::stoi(section.substr(kind.size()));
    } else if (kind == "stdout") {
      target = &last.out;
    } else if (kind == "stderr") {
      target = &last.err;
    } else {
      fail("unknown section `" + kind + "`");
    }
  }
  for (Step& step : out.steps) {
    if (!step.run.command.empty()) step.run.command.pop_back();
  }
  return out;
}

std::string print_case(const Case& value) {
  std::string out = value.comment;
  for (const Step& step : value.steps) {
    out += std::string(kOpen) + step.section + "\n";
    if (step.section != "run") {
      out += step.body;
      continue;
    }
    out += step.run.command + "\n";
    if (step.run.exit != 0)
      out += std::string(kOpen) + "exit " + std::to_string(step.run.exit) + "\n";
    if (!step.run.out.empty()) out += std::string(kOpen) + "stdout\n" + step.run.out;
    if (!step.run.err.empty()) out += std::string(kOpen) + "stderr\n" + step.run.err;
  }
  return out;
}

Case execute(const Case& value, const fs::path& folder) {
  Case seen = value;
  for (Step& step : seen.steps) {
    const std::string kind = step.section.substr(0, step.section.find(' '));
    if (kind == "run") {
      step.run = run(step.run.command, folder);
    } else if (kind == "npy") {
      write_npy(folder, step.section);
    } else {
      write(folder / step.section.substr(kind.size() + 1), step.body);
    }
  }
  return seen;
}

}  // namespace harpe::golden
