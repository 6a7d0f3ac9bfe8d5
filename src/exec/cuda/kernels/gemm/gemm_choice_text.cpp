#include "exec/cuda/kernels/gemm/gemm_choice_text.h"

#include <charconv>

#include "exec/cuda/kernels/gemm/few_rows.h"

namespace harpe::cuda {
namespace {

constexpr std::string_view kCut = " cut ";
constexpr std::string_view kBehind = " behind tile ";
constexpr std::string_view kStreams = " streams ";
constexpr std::string_view kOfBlocks = " by ";

// Removes `word` and the number after it from the front of `text`; returns the number.
std::optional<int> take_count(std::string_view word, std::string_view& text) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::string print_tile(const device::GemmConfig& config) {
  return "tile " + std::to_string(config.tile_m) + "x" + std::to_string(config.tile_n) +
         " stages " + std::to_string(config.stages) +
         (config.cluster > 1 ? " cluster " + std::to_string(config.cluster) : "") +
         (config.ping_pong ? " ping-pong" : "");
}

}  // namespace

std::string print(const GemmChoice& choice) {
  std::string text = print_tile(choice.config);
  if (choice.config.few_rows) {
    text.append(kStreams).append(std::to_string(choice.parts));
    if (choice.stream_blocks == 1) return text;
    return text.append(kOfBlocks).append(std::to_string(choice.stream_blocks));
  }
  if (choice.parts == 1) return text;
  text += kCut;
  text += std::to_string(choice.parts);
  text += kBehind;
  return text + std::to_string(choice.full_tiles);
}

bool is_of_few_rows(std::string_view text) { return text.find(kStreams) != std::string_view::npos; }

std::optional<GemmChoice> find_gemm_choice(const GemmSpec& spec, std::string_view text) {
  for (const device::GemmConfig& config : gemm_configs(spec)) {
    const std::string tile = print_tile(config);
    if (!text.starts_with(tile)) continue;
    std::string_view rest = text.substr(tile.size());
    GemmChoice choice = whole_gemm(spec, config);
    if (config.few_rows) {
      const std::optional<int> streams = take_count(kStreams, rest);
      const int blocks = rest.empty() ? 1 : take_count(kOfBlocks, rest).value_or(0);
      if (!streams || !rest.empty() || *streams < 1) continue;
      if (!can_share_streams(spec, config, blocks)) continue;
      if (*streams > most_streams(spec, config, blocks)) continue;
      choice.parts = *streams;
      choice.stream_blocks = blocks;
      return choice;
    }
    if (rest.empty()) return choice;
    const std::optional<int> parts = take_count(kCut, rest);
    const std::optional<int> behind = parts ? take_count(kBehind, rest) : std::nullopt;
    const bool can_be = behind && rest.empty() && config.cuts && *parts > 1 && *behind >= 0 &&
                        *behind < choice.full_tiles && *parts <= most_parts(spec);
    if (!can_be) continue;
    choice.parts = *parts;
    choice.full_tiles = *behind;
    return choice;
  }
  return std::nullopt;
}

}  // namespace harpe::cuda
