#include "sim/variants.h"

#include <charconv>

namespace harpe {
namespace {

// The number that follows the word in the text; none where the word or the number is missing.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + word.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Tiling> read_tiling(std::string_view variant) {
  const std::optional<std::int64_t> rows = number_behind(variant, "tile ");
  const std::optional<std::int64_t> columns = number_behind(variant, "x");
  if (!rows || !columns || read_streams(variant)) return std::nullopt;
  return Tiling{.tile = {.rows = *rows,
                         .columns = *columns,
                         .cluster = number_behind(variant, " cluster ").value_or(1),
                         .ping_pong = variant.find(" ping-pong") != std::string_view::npos,
                         .by_threads = moves_by_threads(variant),
                         .swapped = variant.find(" swapped") != std::string_view::npos},
                .parts = number_behind(variant, " cut ").value_or(1),
                .whole = number_behind(variant, " behind tile "),
                .joined = number_behind(variant, " joined at ticket ")};
}

std::optional<Streams> read_streams(std::string_view variant) {
  const std::optional<std::int64_t> rows = number_behind(variant, "tile ");
  const std::optional<std::int64_t> columns = number_behind(variant, "x");
  const std::optional<std::int64_t> stages = number_behind(variant, " stages ");
  const std::optional<std::int64_t> count = number_behind(variant, " streams ");
  if (!rows || !columns || !stages || !count) return std::nullopt;
  return Streams{.rows = *rows,
                 .columns = *columns,
                 .stages = *stages,
                 .cluster = number_behind(variant, " cluster ").value_or(1),
                 .count = *count,
                 .each = number_behind(variant, " by ").value_or(1)};
}

bool moves_by_threads(std::string_view variant) {
  return read_streams(variant).has_value() || variant.ends_with(" by threads");
}

std::optional<KeyShares> read_shares(std::string_view variant) {
  const std::optional<std::int64_t> shares = number_behind(variant, "keys in ");
  if (!shares) return std::nullopt;
  return KeyShares{.shares = *shares, .groups = number_behind(variant, " heads in ").value_or(1)};
}

}  // namespace harpe
