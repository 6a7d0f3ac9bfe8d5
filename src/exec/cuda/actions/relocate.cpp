#include "exec/cuda/actions/relocate.h"

#include <algorithm>
#include <optional>

#include "exec/cuda/actions/loop_nests.h"

namespace harpe::cuda {
namespace {

using actions::Assign;

// One move as a map of places, in elements from where each side begins.
class PlaceMap {
 public:
  explicit PlaceMap(const Assign& move) : move_(&move) {
    for (std::size_t loop = 0; loop < move.rows.loops().size(); ++loop) {
      loops_.push_back({.length = move.rows.loops()[loop],
                        .to = move.rows.strides(0)[loop],
                        .from = move.rows.strides(1)[loop]});
    }
    loops_.push_back({.length = move.rows.length(), .to = 1, .from = 1});
    std::ranges::stable_sort(loops_, std::greater(), &Loop::from);
  }

  [[nodiscard]] const Assign& move() const { return *move_; }
  [[nodiscard]] std::int64_t elements() const { return move_->rows.count() * move_->rows.length(); }

  [[nodiscard]] std::optional<std::int64_t> to(std::int64_t from) const {
    std::int64_t to = 0;
    if (from < 0) return std::nullopt;
    for (const Loop& loop : loops_) {
      if (loop.from == 0) return std::nullopt;
      const std::int64_t turn = from / loop.from;
      if (turn >= loop.length) return std::nullopt;
      to += turn * loop.to;
      from -= turn * loop.from;
    }
    if (from != 0) return std::nullopt;
    return to;
  }

  // Where `count` places so far apart come to lie equally far apart: how far.
  [[nodiscard]] std::optional<std::int64_t> stride(std::int64_t first, std::int64_t stride,
                                                   std::int64_t count) const {
    const std::optional<std::int64_t> start = to(first);
    if (!start) return std::nullopt;
    if (count == 1) return stride;
    const std::optional<std::int64_t> next = to(first + stride);
    if (!next) return std::nullopt;
    const std::int64_t step = *next - *start;
    for (std::int64_t i = 2; i < count; ++i) {
      if (to(first + i * stride) != *start + i * step) return std::nullopt;
    }
    return step;
  }

 private:
  struct Loop {
    std::int64_t length;
    std::int64_t to;
    std::int64_t from;
  };
  const Assign* move_;
  std::vector<Loop> loops_;
};

class Relocator {
 public:
  explicit Relocator(std::span<const actions::Action> moves) {
    for (const actions::Action& action : moves) {
      const auto* const move = std::get_if<Assign>(&action);
      usable_ = usable_ && move != nullptr && move->slots.used.rows == nullptr;
      if (!usable_) return;
      maps_.emplace_back(*move);
      left_ += maps_.back().elements();
    }
  }

  bool relocate(std::vector<LaunchSpec>& launches) {
    std::vector<LaunchSpec> changed = launches;
    for (LaunchSpec& launch : changed) {
      if (!usable_) return false;
      auto* const product = std::get_if<GemmSpec>(&launch);
      auto* const heads = std::get_if<AttentionSpec>(&launch);
      usable_ = product != nullptr ? change(*product) : heads != nullptr && change(*heads);
    }
    if (!usable_ || left_ != 0) return false;
    launches = std::move(changed);
    return true;
  }

 private:
  struct Place {
    const PlaceMap* map;
    std::int64_t from;  // elements
  };

  [[nodiscard]] std::optional<Place> place_of(DeviceAddress state) const {
    for (const PlaceMap& map : maps_) {
      const DeviceAddress base = address_of(map.move().from.data);
      const auto size = static_cast<DeviceAddress>(size_in_bytes(map.move().from.dtype));
      if (state < base || (state - base) % size != 0) continue;
      const auto from = static_cast<std::int64_t>((state - base) / size);
      if (map.to(from)) return Place{.map = &map, .from = from};
    }
    return std::nullopt;
  }

  [[nodiscard]] static DeviceAddress moved_to(const Place& place) {
    const Assign& move = place.map->move();
    return address_of(move.to.data) +
           static_cast<DeviceAddress>(*place.map->to(place.from) * size_in_bytes(move.to.dtype));
  }

  [[nodiscard]] bool change(GemmSpec& spec) {
    if (spec.add || spec.out != device::Element::F32) return false;
    for (GemmPanelSpec& panel : spec.panels) {
      const std::optional<Place> place = place_of(panel.c);
      if (!place) return false;
      const DType dtype = place->map->move().to.dtype;
      const DType in = spec.in == device::Element::BF16 ? DType::BF16 : DType::F16;
      if (dtype != in) return false;
      const auto stride = place->map->stride(place->from, panel.c_stride, panel.rows);
      const bool whole =
          place->map->stride(place->from, 1, spec.n) == 1 && stride.has_value() &&
          place->map->to(place->from + (panel.rows - 1) * panel.c_stride + spec.n - 1) ==
              *place->map->to(place->from) + (panel.rows - 1) * *stride + spec.n - 1;
      if (!whole) return false;
      left_ -= panel.rows * spec.n;
      panel.c = moved_to(*place);
      panel.c_stride = *stride;
    }
    spec.out = spec.in;
    return true;
  }

  [[nodiscard]] bool change(AttentionSpec& spec) {
    if (spec.carried || !spec.to_state) return false;
    const DType element = spec.element == device::Element::BF16 ? DType::BF16 : DType::F16;
    for (AttentionPanelSpec& panel : spec.panels) {
      const bool moved = change(panel.output, spec, panel.rows, spec.value_dim, element) &&
                         change(panel.lse, spec, panel.rows, 1, DType::F32);
      if (!moved) return false;
    }
    spec.to_state = false;
    return true;
  }

  [[nodiscard]] bool change(HeadTensor& tensor, const AttentionSpec& spec, std::int64_t rows,
                            std::int64_t columns, DType wanted) {
    const std::optional<Place> place = place_of(tensor.address);
    if (!place || place->map->move().to.dtype != wanted) return false;
    const PlaceMap& map = *place->map;
    const auto batch = map.stride(place->from, tensor.strides.batch, spec.batch);
    const auto row = map.stride(place->from, tensor.strides.row, rows);
    const auto head = map.stride(place->from, tensor.strides.head, spec.heads);
    if (!batch || !row || !head || map.stride(place->from, 1, columns) != 1) return false;
    const std::int64_t last = (spec.batch - 1) * tensor.strides.batch +
                              (rows - 1) * tensor.strides.row +
                              (spec.heads - 1) * tensor.strides.head + columns - 1;
    const std::int64_t there =
        (spec.batch - 1) * *batch + (rows - 1) * *row + (spec.heads - 1) * *head + columns - 1;
    if (map.to(place->from + last) != *map.to(place->from) + there) return false;
    left_ -= spec.batch * rows * spec.heads * columns;
    tensor.address = moved_to(*place);
    tensor.strides = {.batch = *batch, .row = *row, .head = *head};
    return true;
  }

  std::vector<PlaceMap> maps_;
  std::int64_t left_ = 0;  // elements that no launch writes yet
  bool usable_ = true;
};

}  // namespace

bool relocate(std::vector<LaunchSpec>& launches, std::span<const actions::Action> moves) {
  return Relocator(moves).relocate(launches);
}

}  // namespace harpe::cuda
