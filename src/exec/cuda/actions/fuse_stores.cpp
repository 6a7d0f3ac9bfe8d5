#include "exec/cuda/actions/fuse_stores.h"

#include <algorithm>
#include <array>

#include "exec/cuda/actions/place_map.h"

namespace harpe::cuda {
namespace {

using actions::Add;
using actions::Assign;

DType type_of(device::Element element) {
  return element == device::Element::BF16 ? DType::BF16 : DType::F16;
}

std::int64_t elements_of(const GemmSpec& spec) {
  std::int64_t elements = 0;
  for (const GemmPanelSpec& panel : spec.panels) elements += panel.rows * spec.n;
  return elements;
}

// Rows of values side by side, which is what C is made of.
struct Block {
  DeviceAddress address = 0;
  std::int64_t stride = 0;
  DType dtype = DType::F32;
};

std::optional<Block> move_block(std::span<const PlaceMap> maps, DeviceAddress address,
                                std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  const std::array<Extent, 2> extents = {{{rows, stride}, {columns, 1}}};
  const std::optional<MovedArray> there = find_moved(maps, address, extents);
  if (!there || there->strides[1] != 1) return std::nullopt;
  return Block{
      .address = there->address, .stride = there->strides[0], .dtype = there->map->target().dtype};
}

// The maps of a transfer, and how many elements no panel accounts for yet.
class TransferMaps {
 public:
  static std::optional<TransferMaps> of(const Transfer& transfer) {
    TransferMaps maps;
    for (const actions::Action& action : transfer.moves) {
      const auto* const move = std::get_if<Assign>(&action);
      if (move == nullptr || move->slots.used.rows != nullptr) return std::nullopt;
      maps.maps_.emplace_back(*move, PlaceMap::Way::Along);
      maps.left_ += maps.maps_.back().elements();
    }
    return maps;
  }

  [[nodiscard]] bool moves(const GemmPanelSpec& panel) const { return is_moved(maps_, panel.c); }
  [[nodiscard]] bool is_used_up() const { return left_ == 0; }

  [[nodiscard]] bool move(GemmPanelSpec& panel, const GemmSpec& spec) {
    const std::optional<Block> there =
        move_block(maps_, panel.c, panel.c_stride, panel.rows, spec.n);
    if (!there || there->dtype != type_of(spec.in)) return false;
    left_ -= panel.rows * spec.n;
    panel.c = there->address;
    panel.c_stride = there->stride;
    return true;
  }

 private:
  std::vector<PlaceMap> maps_;
  std::int64_t left_ = 0;
};

// One cell of a sum: contributions as moves into its state, and the total's move home.
struct Sum {
  std::vector<Assign> contributions;
  const Assign* total = nullptr;
};

// The first contribution is assigned, the others are added.
std::optional<std::vector<Sum>> read_sums(std::span<const actions::Action> actions) {
  std::vector<Sum> sums;
  for (const actions::Action& action : actions) {
    const bool begins = sums.empty() || sums.back().total != nullptr;
    const std::byte* const state = begins ? nullptr : sums.back().contributions.front().to.data;
    const auto* const move = std::get_if<Assign>(&action);
    const auto* const added = std::get_if<Add>(&action);
    if (move != nullptr && move->slots.used.rows == nullptr && begins) {
      sums.push_back({.contributions = {*move}, .total = nullptr});
    } else if (move != nullptr && move->slots.used.rows == nullptr && move->from.data == state) {
      sums.back().total = move;
    } else if (added != nullptr && added->slots.used.rows == nullptr && !begins &&
               added->to.data == state) {
      sums.back().contributions.push_back(
          {.to = added->to, .from = added->from, .rows = added->rows});
    } else {
      return std::nullopt;
    }
  }
  if (sums.empty() || sums.back().total == nullptr) return std::nullopt;
  return sums;
}

std::optional<Block> move_along(const Assign& move, PlaceMap::Way way, const Block& block,
                                std::int64_t rows, std::int64_t columns) {
  const std::array<PlaceMap, 1> map = {PlaceMap(move, way)};
  return move_block(map, block.address, block.stride, rows, columns);
}

bool contributes(const Assign& move, const GemmPanelSpec& panel) {
  const std::array<PlaceMap, 1> map = {PlaceMap(move, PlaceMap::Way::Along)};
  return is_moved(map, panel.c);
}

// By the copy engine.
bool can_be_loaded(const Block& block) {
  constexpr std::int64_t kBytes = 16;
  return block.address % kBytes == 0 && block.stride * size_in_bytes(block.dtype) % kBytes == 0;
}

bool take_sum(GemmPanelSpec& panel, const GemmSpec& spec, const Sum& sum, const ReadyAt& ready) {
  const auto own = std::ranges::find_if(
      sum.contributions, [&](const Assign& move) { return contributes(move, panel); });
  const Block made{.address = panel.c, .stride = panel.c_stride};
  const auto state = move_along(*own, PlaceMap::Way::Along, made, panel.rows, spec.n);
  if (!state) return false;
  const auto home = move_along(*sum.total, PlaceMap::Way::Along, *state, panel.rows, spec.n);
  if (!home || home->dtype != type_of(spec.in)) return false;
  for (auto other = sum.contributions.begin(); other != sum.contributions.end(); ++other) {
    if (other == own) continue;
    const auto from = move_along(*other, PlaceMap::Way::Against, *state, panel.rows, spec.n);
    if (!from || from->dtype != type_of(spec.in) || !can_be_loaded(*from)) return false;
    const std::optional<device::FlagWait> flag = ready(from->address);
    if (!flag) return false;
    panel.addends.push_back({.address = from->address, .stride = from->stride, .ready = *flag});
  }
  panel.c = home->address;
  panel.c_stride = home->stride;
  return true;
}

// Behind the last panel that stays comes the first to leave.
void turn(std::vector<GemmPanelSpec>& leaving, std::size_t behind) {
  std::ranges::rotate(leaving, leaving.begin() + static_cast<std::ptrdiff_t>(behind));
}

}  // namespace

std::optional<StoringGemms> fuse_stores(const GemmSpec& spec, std::span<const Transfer> transfers) {
  const bool is_own = spec.engine == LeafEngine::Own;
  if (!is_own || spec.add || spec.out != device::Element::F32) return std::nullopt;
  std::vector<TransferMaps> maps;
  StoringGemms out{.leaving = spec, .staying = spec};
  out.leaving.out = spec.in;
  out.leaving.panels.clear();
  out.staying->panels.clear();
  std::vector<int> fused_stores;
  for (const Transfer& transfer : transfers) {
    const std::optional<TransferMaps> own = TransferMaps::of(transfer);
    if (!own) return std::nullopt;
    maps.push_back(*own);
    fused_stores.push_back(transfer.raise ? static_cast<int>(out.leaving.fused_stores.size()) : -1);
    if (transfer.raise) out.leaving.fused_stores.push_back(*transfer.raise);
  }
  std::size_t behind = 0;
  for (const GemmPanelSpec& from : spec.panels) {
    GemmPanelSpec panel = from;
    const auto mover =
        std::ranges::find_if(maps, [&](const TransferMaps& one) { return one.moves(panel); });
    if (mover == maps.end()) {
      out.staying->panels.push_back(std::move(panel));
      behind = out.leaving.panels.size();
      continue;
    }
    if (!mover->move(panel, spec)) return std::nullopt;
    panel.fused_store = fused_stores[static_cast<std::size_t>(mover - maps.begin())];
    out.leaving.panels.push_back(std::move(panel));
  }
  if (!std::ranges::all_of(maps, &TransferMaps::is_used_up)) return std::nullopt;
  turn(out.leaving.panels, behind);
  if (out.staying->panels.empty()) out.staying.reset();
  return out;
}

bool sum_at_home(GemmSpec& spec, std::span<const actions::Action> sums, const ReadyAt& ready) {
  if (spec.add || spec.out != device::Element::F32 || spec.in != device::Element::BF16 ||
      spec.layout != device::GemmLayout::NMajor) {
    return false;
  }
  const std::optional<std::vector<Sum>> cells = read_sums(sums);
  if (!cells) return false;
  std::int64_t totals = 0;
  for (const Sum& sum : *cells) totals += PlaceMap(*sum.total, PlaceMap::Way::Along).elements();
  if (totals != elements_of(spec)) return false;
  GemmSpec changed = spec;
  for (GemmPanelSpec& panel : changed.panels) {
    const auto cell = std::ranges::find_if(*cells, [&](const Sum& sum) {
      return std::ranges::any_of(sum.contributions,
                                 [&](const Assign& move) { return contributes(move, panel); });
    });
    if (cell == cells->end() || !take_sum(panel, changed, *cell, ready)) return false;
  }
  changed.out = spec.in;
  spec = std::move(changed);
  return true;
}

}  // namespace harpe::cuda
