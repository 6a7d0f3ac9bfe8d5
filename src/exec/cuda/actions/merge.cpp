#include "exec/cuda/actions/merge.h"

#include <algorithm>

#include "exec/cuda/actions/merge_attention.h"

namespace harpe::cuda {
namespace {

// Products in turn, as panels of rows with pieces of columns.
class ProductMerger {
 public:
  std::optional<GemmSpec> merge(std::span<const ArrivingLaunch> launches) {
    for (const ArrivingLaunch& launch : launches) {
      const auto* spec = std::get_if<GemmSpec>(&launch.spec);
      if (spec == nullptr || !add(*spec, launch.ready)) return std::nullopt;
    }
    std::int64_t k = 0;
    for (const GemmPieceSpec& piece : merged_.panels.front().pieces) k += piece.k_count;
    merged_.k = k;
    const bool even = std::ranges::all_of(merged_.panels, [&](const GemmPanelSpec& panel) {
      return panel.pieces.back().k_begin + panel.pieces.back().k_count == k;
    });
    if (!even) return std::nullopt;
    return merged_;
  }

 private:
  [[nodiscard]] bool add(const GemmSpec& spec, const device::FlagWait& ready) {
    GemmPanelSpec panel = spec.panels.front();
    if (panel.used.rows != nullptr) return false;
    panel.pieces.front().ready = ready;
    if (merged_.panels.empty()) {
      merged_ = spec;
      merged_.panels = {panel};
      return true;
    }
    const bool alike = spec.n == merged_.n && spec.in == merged_.in && spec.out == merged_.out &&
                       spec.layout == merged_.layout && spec.b_stride == merged_.b_stride;
    if (!alike) return false;
    const GemmPanelSpec& last = merged_.panels.back();
    if (panel.c == last.c && panel.rows == last.rows && panel.c_stride == last.c_stride) {
      return spec.add && add_piece(spec, panel.pieces.front());
    }
    if (spec.b != merged_.b || spec.add != merged_.add) return false;
    merged_.panels.push_back(panel);
    return true;
  }

  // Further columns of A with the rows of B behind those before.
  [[nodiscard]] bool add_piece(const GemmSpec& spec, GemmPieceSpec piece) {
    GemmPanelSpec& panel = merged_.panels.back();
    const std::int64_t begin = panel.pieces.back().k_begin + panel.pieces.back().k_count;
    const std::int64_t step =
        spec.layout == device::GemmLayout::NMajor ? spec.b_stride : std::int64_t{1};
    const auto moved = static_cast<DeviceAddress>(begin * step * device::bytes_of(spec.in));
    if (spec.b != merged_.b + moved) return false;
    piece.k_begin = begin;
    panel.pieces.push_back(piece);
    return true;
  }

  GemmSpec merged_;
};

}  // namespace

std::optional<LaunchSpec> merge(std::span<const ArrivingLaunch> launches,
                                const device::WaitContext& wait) {
  const auto is_of_library = [](const ArrivingLaunch& launch) {
    return is_by_library(launch.spec);
  };
  if (std::ranges::any_of(launches, is_of_library)) return std::nullopt;
  if (std::holds_alternative<GemmSpec>(launches.front().spec)) {
    std::optional<GemmSpec> product = ProductMerger().merge(launches);
    if (!product) return std::nullopt;
    product->wait = wait;
    return LaunchSpec{*std::move(product)};
  }
  std::optional<AttentionSpec> heads = merge_attention(launches);
  if (!heads) return std::nullopt;
  heads->wait = wait;
  return LaunchSpec{*std::move(heads)};
}

}  // namespace harpe::cuda
