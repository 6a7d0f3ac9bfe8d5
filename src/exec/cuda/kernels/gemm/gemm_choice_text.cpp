#include "exec/cuda/kernels/gemm/gemm_choice_text.h"

#include <charconv>

#include "exec/cuda/kernels/gemm/few_rows.h"

namespace harpe::cuda {
namespace {

constexpr std::string_view kCut = " cut ";
constexpr std::string_view kBehind = " behind tile ";
constexpr std::string_view kJoined = " joined at ticket ";
constexpr std::string_view kStreams = " streams ";
constexpr std::string_view kOfBlocks = " by ";
constexpr std::string_view kByThreads = " by threads";

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
         (config.ping_pong ? " ping-pong" : "") + (config.swapped ? " swapped" : "") +
         (config.by_threads ? std::string(kByThreads) : "");
}

// Reads how a kernel of tiles cuts them, and when copying thread blocks join; false if it cannot.
bool read_cut(const GemmSpec& spec, std::string_view text, GemmChoice& choice) {
  const int tiles = choice.full_tiles;
  if (text.starts_with(kCut)) {
    const int parts = take_count(kCut, text).value_or(0);
    const int behind = take_count(kBehind, text).value_or(-1);
    const bool can_be = choice.config.cuts && parts > 1 && parts <= most_parts(spec) &&
                        behind >= 0 && behind < tiles;
    if (!can_be) return false;
    choice.parts = parts;
    choice.full_tiles = behind;
  }
  if (text.starts_with(kJoined)) {
    choice.joined = take_count(kJoined, text).value_or(0);
    if (!can_join(spec) || choice.joined < 1 || choice.joined >= tiles) return false;
  }
  return text.empty();
}

}  // namespace

std::string print(const GemmChoice& choice) {
  std::string text = print_tile(choice.config);
  if (choice.config.few_rows) {
    text.append(kStreams).append(std::to_string(choice.parts));
    if (choice.stream_blocks == 1) return text;
    return text.append(kOfBlocks).append(std::to_string(choice.stream_blocks));
  }
  if (choice.parts > 1) {
    text.append(kCut).append(std::to_string(choice.parts));
    text.append(kBehind).append(std::to_string(choice.full_tiles));
  }
  if (choice.joined > 0) text.append(kJoined).append(std::to_string(choice.joined));
  return text;
}

bool moves_by_threads(std::string_view text) {
  return text.find(kStreams) != std::string_view::npos || text.ends_with(kByThreads);
}

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
    if (read_cut(spec, rest, choice)) return choice;
  }
  return std::nullopt;
}

}  // namespace harpe::cuda
