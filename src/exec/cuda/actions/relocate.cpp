#include "exec/cuda/actions/relocate.h"

#include <optional>

#include "exec/cuda/actions/place_map.h"

namespace harpe::cuda {
namespace {

using actions::Assign;

bool steps_alike(const HeadTensor& one, const HeadTensor& other, std::int64_t batch) {
  return one.strides.row == other.strides.row && one.strides.head == other.strides.head &&
         (batch == 1 || one.strides.batch == other.strides.batch);
}

class Relocator {
 public:
  explicit Relocator(std::span<const actions::Action> moves) {
    for (const actions::Action& action : moves) {
      const auto* const move = std::get_if<Assign>(&action);
      usable_ = usable_ && move != nullptr;
      if (!usable_) return;
      slots_.push_back(&move->slots);
      maps_.emplace_back(*move, PlaceMap::Way::Along);
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
  [[nodiscard]] bool change(GemmSpec& spec) {
    if (spec.add || spec.out != device::Element::F32) return false;
    const DType in = spec.in == device::Element::BF16 ? DType::BF16 : DType::F16;
    for (GemmPanelSpec& panel : spec.panels) {
      const Extent extents[] = {{panel.rows, panel.c_stride}, {spec.n, 1}};
      const std::optional<MovedArray> there = find_moved(maps_, panel.c, extents);
      if (!there || there->map->target().dtype != in || there->strides[1] != 1) return false;
      if (!take_over(slots_of(*there), panel.used)) return false;
      left_ -= panel.rows * spec.n;
      panel.c = there->address;
      panel.c_stride = there->strides[0];
    }
    spec.out = spec.in;
    return !has_groups(spec) || stores_in_bulk(spec);
  }

  [[nodiscard]] const actions::SlotRows<2>& slots_of(const MovedArray& there) const {
    return *slots_[static_cast<std::size_t>(there.map - maps_.data())];
  }

  // How many rows are used is said to whom the move would say it.
  [[nodiscard]] static bool take_over(const actions::SlotRows<2>& slots, device::UsedRows& used) {
    if (used.rows == nullptr && slots.used.rows == nullptr) return true;
    if (used.rows == nullptr || used.result != slots.used.rows ||
        used.before != slots.used.before) {
      return false;
    }
    used.result = slots.result;
    return true;
  }

  [[nodiscard]] bool change(AttentionSpec& spec) {
    if (!spec.to_state) return false;
    const DType element = spec.element == device::Element::BF16 ? DType::BF16 : DType::F16;
    for (AttentionPanelSpec& panel : spec.panels) {
      const HeadTensor lse = panel.lse;
      const bool moved = change(panel.output, spec, panel.rows, spec.value_dim, element) &&
                         change(panel.lse, spec, panel.rows, 1, DType::F32);
      if (!moved || (spec.carried && !steps_alike(panel.lse, lse, spec.batch))) return false;
      if (spec.carried) panel.carried_lse = lse.address;
    }
    spec.to_state = false;
    return true;
  }

  [[nodiscard]] bool change(HeadTensor& tensor, const AttentionSpec& spec, std::int64_t rows,
                            std::int64_t columns, DType wanted) {
    const Extent extents[] = {{spec.batch, tensor.strides.batch},
                              {rows, tensor.strides.row},
                              {spec.heads, tensor.strides.head},
                              {columns, 1}};
    const std::optional<MovedArray> there = find_moved(maps_, tensor.address, extents);
    if (!there || there->map->target().dtype != wanted || there->strides[3] != 1 ||
        slots_of(*there).used.rows != nullptr) {
      return false;
    }
    left_ -= spec.batch * rows * spec.heads * columns;
    tensor.address = there->address;
    tensor.strides = {
        .batch = there->strides[0], .row = there->strides[1], .head = there->strides[2]};
    return true;
  }

  std::vector<PlaceMap> maps_;
  std::vector<const actions::SlotRows<2>*> slots_;  // of each
  std::int64_t left_ = 0;                           // elements that no launch writes yet
  bool usable_ = true;
};

}  // namespace

bool relocate(std::vector<LaunchSpec>& launches, std::span<const actions::Action> moves) {
  return Relocator(moves).relocate(launches);
}

}  // namespace harpe::cuda
