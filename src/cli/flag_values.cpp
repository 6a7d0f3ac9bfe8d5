#include "cli/flag_values.h"

#include <algorithm>
#include <charconv>

namespace harpe::cli {

Checked<std::int64_t> parse_count(std::string_view flag, std::string_view text, std::int64_t low,
                                  std::int64_t high) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || stop != end || error != std::errc() || value < low || value > high) {
    return make_diag(DiagCode::U109, {{"flag", flag},
                                      {"text", text},
                                      {"wanted", "an integer from " + std::to_string(low) + " to " +
                                                     std::to_string(high)}});
  }
  return value;
}

Checked<std::vector<NamedFile>> parse_named_files(std::string_view flag,
                                                  std::span<const std::string> words) {
  std::vector<NamedFile> files;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      return make_diag(DiagCode::U109,
                       {{"flag", flag}, {"text", word}, {"wanted", "NAME=FILE.npy"}});
    }
    NamedFile file{.name = word.substr(0, equals), .path = word.substr(equals + 1)};
    if (std::ranges::find(files, file.name, &NamedFile::name) != files.end()) {
      return make_diag(DiagCode::U116, {{"flag", flag}, {"name", file.name}});
    }
    files.push_back(std::move(file));
  }
  return files;
}

Checked<SimulateOptions::Delay> parse_delay(const std::string& text, std::int64_t ranks) {
  constexpr double kLongest = 1e9;  // microseconds
  const std::size_t equals = text.find('=');
  const auto refuse = [&] {
    return make_diag(
        DiagCode::U109,
        {{"flag", "--delay"}, {"text", text}, {"wanted", "RANK=MICROSECONDS, as in 3=25.5"}});
  };
  if (equals == std::string::npos) return refuse();
  HP_TRY(const std::int64_t rank,
         parse_count("--delay", std::string_view(text).substr(0, equals), 0, ranks - 1));
  double time = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + equals + 1, end, time);
  const bool in_range = time >= 0 && time <= kLongest;  // false of a NaN
  if (error != std::errc() || stopped != end || !in_range) return refuse();
  return SimulateOptions::Delay{RankId(rank), from_microseconds(time)};
}

Checked<Launch> parse_launch(const std::string& text) {
  if (text == "graph") return Launch::Graph;
  if (text == "host") return Launch::Host;
  static const std::vector<std::string> kWays = {"graph", "host"};
  return make_diag(DiagCode::U109, {{"flag", "--launch"},
                                    {"text", text},
                                    {"wanted", "graph or host" + suggestion(text, kWays)}});
}

}  // namespace harpe::cli
