#include "sim/tickets.h"

#include <algorithm>
#include <charconv>
#include <cmath>

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
  if (!rows || !columns || is_streamed(variant)) return std::nullopt;
  const std::int64_t cluster = number_behind(variant, " cluster ").value_or(1);
  return Tiling{.cluster = cluster,
                .rows = *rows * cluster,
                .columns = *columns,
                .parts = number_behind(variant, " cut ").value_or(1),
                .whole = number_behind(variant, " behind tile ")};
}

bool is_streamed(std::string_view variant) {
  return variant.find(" streams ") != std::string_view::npos;
}

std::optional<KeyShares> read_shares(std::string_view variant) {
  const std::optional<std::int64_t> shares = number_behind(variant, "keys in ");
  if (!shares) return std::nullopt;
  return KeyShares{.shares = *shares, .groups = number_behind(variant, " heads in ").value_or(1)};
}

void Tickets::add(double batch, double rows, double columns) {
  const double tiles = std::ceil(rows / static_cast<double>(tiling_.rows)) *
                       std::ceil(columns / static_cast<double>(tiling_.columns));
  rows_ += batch * rows;
  columns_ = std::max(columns_, columns);
  add_tiles(static_cast<std::int64_t>(batch * tiles));
}

void Tickets::add_tiles(std::int64_t tiles) {
  tiles_ += tiles;
  const std::int64_t whole = std::min(tiles_, tiling_.whole.value_or(tiles_));
  bounds_.push_back(whole + (tiles_ - whole) * tiling_.parts);
}

double Tickets::apart() const {
  const auto cluster = static_cast<double>(tiling_.cluster);
  const double rows = std::ceil(rows_ * cluster / static_cast<double>(tiling_.rows)) / cluster;
  const double columns = std::ceil(columns_ / static_cast<double>(tiling_.columns));
  Tickets joined(tiling_, blocks_);
  joined.add_tiles(static_cast<std::int64_t>(std::ceil(rows * columns)));
  return steps(0, panels() - 1) / joined.steps(0, 0);
}

double Tickets::cut_bytes() const {
  if (tiling_.parts == 1 || tiles_ <= tiling_.whole.value_or(tiles_)) return 0;
  constexpr double kFloat = 4;
  const auto tile = static_cast<double>(tiling_.rows / tiling_.cluster * tiling_.columns);
  return static_cast<double>(1 + tiling_.parts) * tile * kFloat;
}

double Tickets::steps(std::size_t first, std::size_t last) const {
  const auto taken = [&](std::int64_t from, std::int64_t to) {
    return std::max<std::int64_t>(0, (to - from + blocks_ - 1) / blocks_);
  };
  const std::int64_t begin = bounds_[first];
  const std::int64_t end = bounds_[last + 1];
  const std::int64_t whole = taken(begin, std::min(end, tiling_.whole.value_or(end)));
  const std::int64_t parts = taken(begin + whole * blocks_, end);
  return static_cast<double>(whole) +
         static_cast<double>(parts) / static_cast<double>(tiling_.parts);
}

}  // namespace harpe
