#include <algorithm>
#include <utility>

#include "exec/cuda/actions/loop_nests.h"
#include "exec/cuda/executor/bind_parts.h"

namespace harpe::cuda {
namespace {

enum GemmOperand : std::uint8_t { kOperandA, kOperandB, kOperandC };

device::Element element_of(DType dtype) { return half_of(dtype).value_or(device::Element::F32); }

bool have_one_shape(const GemmSpec& one, const GemmSpec& other) {
  return one.n == other.n && one.in == other.in && one.layout == other.layout &&
         one.engine == other.engine;
}

class GemmBinder {
 public:
  explicit GemmBinder(const KernelBinding& binding) : binding_(binding), kernel_(binding.kernel) {}

  Checked<GemmSpec> bind() {
    for (const launch::Panel& panel : kernel_.panels) HP_REQUIRE_OK(add_panel(panel));
    HP_REQUIRE_OK(place_b());
    add_fused_stores();
    HP_TRY(spec_.copies, binding_.copies());
    spec_.copy_blocks = kernel_.copy_blocks;
    const bool signals = waits_ || !spec_.fused_stores.empty() || !spec_.copies.empty();
    if (signals) spec_.wait = binding_.wait_context();
    return std::move(spec_);
  }

 private:
  // Where one K chunk has its B, and what it lies behind in the panel's.
  struct ChunkOfB {
    std::size_t panel = 0;
    std::int64_t k_begin = 0;
    DeviceAddress address = 0;
  };

  // The GEMM alone that multiplies the arrival for the panel.
  [[nodiscard]] LaunchAlone* find(const launch::Panel& panel,
                                  const launch::Arrival& arrival) const {
    const auto found = std::ranges::find_if(binding_.alone, [&](const LaunchAlone& alone) {
      return !alone.is_bound && std::holds_alternative<GemmSpec>(*alone.spec) &&
             are_same_elements(alone.places[kOperandA], place_at(arrival.reads, kOperandA)) &&
             are_same_elements(alone.places[kOperandB], place_at(arrival.reads, kOperandB)) &&
             are_same_elements(alone.places[kOperandC], place_at(panel.stores, 0));
    });
    return found == binding_.alone.end() ? nullptr : &*found;
  }

  Checked<Ok> add_panel(const launch::Panel& panel) {
    std::int64_t k = 0;
    for (const std::int32_t index : panel.meets) {
      const launch::Arrival& arrival = kernel_.arrivals[static_cast<std::size_t>(index)];
      LaunchAlone* const alone = find(panel, arrival);
      if (alone == nullptr) return binding_.refuse("none of them multiplies what it multiplies");
      alone->is_bound = true;
      const auto& gemm = std::get<GemmSpec>(*alone->spec);
      if (spec_.panels.empty()) begin(gemm, panel);
      if (!have_one_shape(gemm, spec_) || panel.adds != spec_.add) {
        return binding_.refuse("their GEMMs differ in shape or type");
      }
      if (k == 0) HP_REQUIRE_OK(begin_panel(gemm, panel, alone->places[kOperandC]));
      HP_REQUIRE_OK(add_piece(gemm, arrival, k));
      k += gemm.k;
    }
    if (k == 0 || (spec_.panels.size() > 1 && k != spec_.k)) {
      return binding_.refuse("its panels differ in K");
    }
    spec_.k = k;
    return add_addends(panel);
  }

  void begin(const GemmSpec& gemm, const launch::Panel& panel) {
    spec_ = gemm;
    spec_.panels.clear();
    spec_.out = element_of(panel.dtype);
    spec_.add = panel.adds;
  }

  Checked<Ok> begin_panel(const GemmSpec& gemm, const launch::Panel& panel,
                          const std::optional<launch::Place>& alone) {
    const launch::Place* const to = place_at(panel.stores, 0);
    GemmPanelSpec& bound = spec_.panels.emplace_back(gemm.panels.front());
    HP_TRY(const StridedArray c, binding_.place(array_c(gemm, bound), "rows of C", to));
    bound.pieces.clear();
    bound.c = c.address;
    bound.c_stride = c.extents.front().stride;
    if (alone && to != nullptr) move_number(alone->alloc, to->alloc, bound.used);
    return Ok{};
  }

  // How many rows are used is said to the allocation that the rows go to.
  void move_number(AllocId from, AllocId to, device::UsedRows& used) const {
    if (from == to || used.result == nullptr) return;
    const actions::Occupancy& numbers = binding_.source.memory.occupancy;
    std::int32_t* const there = numbers.of(to);
    used.result = there == nullptr ? nullptr : there + (used.result - numbers.of(from));
  }

  Checked<Ok> add_piece(const GemmSpec& gemm, const launch::Arrival& arrival, std::int64_t k) {
    const GemmPanelSpec& alone = gemm.panels.front();
    GemmPieceSpec piece = alone.pieces.front();
    HP_TRY(const StridedArray a, binding_.place(array_a(gemm, alone, piece), "rows of A",
                                                place_at(arrival.reads, kOperandA)));
    HP_TRY(const StridedArray b, binding_.place(array_b(gemm, alone, piece), "rows of B",
                                                place_at(arrival.reads, kOperandB)));
    piece.a = a.address;
    piece.stride = a.extents.front().stride;
    piece.k_begin = k;
    piece.ready = binding_.await(arrival.when);
    waits_ = waits_ || arrival.when;
    spec_.panels.back().pieces.push_back(piece);
    if (chunks_.empty()) spec_.b_stride = b.extents.front().stride;
    if (b.extents.front().stride != spec_.b_stride) {
      return binding_.refuse("their B's have rows that are not equally far apart");
    }
    chunks_.push_back({.panel = spec_.panels.size() - 1, .k_begin = k, .address = b.address});
    return Ok{};
  }

  Checked<Ok> add_addends(const launch::Panel& panel) {
    GemmPanelSpec& bound = spec_.panels.back();
    GemmSpec like = spec_;
    like.out = spec_.in;
    for (const launch::Addend& addend : panel.addends) {
      HP_TRY(const StridedArray from,
             binding_.place(array_c(like, bound), "addends", &addend.reads));
      bound.addends.push_back({.address = from.address,
                               .stride = from.extents.front().stride,
                               .ready = binding_.await(addend.when)});
      waits_ = waits_ || addend.when;
    }
    return Ok{};
  }

  // One array for all panels, or with groups one that has a B for each.
  Checked<Ok> place_b() {
    const bool is_n_major = spec_.layout == device::GemmLayout::NMajor;
    const std::int64_t element = device::bytes_of(spec_.in);
    const bool has_own = has_groups(spec_) && spec_.panels.size() > 1;
    const std::int64_t rows = is_n_major ? spec_.k : spec_.n;
    const std::int64_t row_bytes = spec_.b_stride * element;
    spec_.b = std::ranges::min(chunks_, {}, &ChunkOfB::address).address;
    for (const ChunkOfB& chunk : chunks_) {
      const std::int64_t behind = static_cast<std::int64_t>(chunk.address - spec_.b) -
                                  chunk.k_begin * (is_n_major ? row_bytes : element);
      const bool fits = has_own ? behind % row_bytes == 0 : behind == 0;
      if (!fits) return binding_.refuse("their B's are not of one array");
      if (!has_own) continue;
      spec_.panels[chunk.panel].b_first = behind / row_bytes;
      spec_.b_rows = std::max(spec_.b_rows, behind / row_bytes + rows);
    }
    return Ok{};
  }

  // Without those whose signals are to be lost.
  void add_fused_stores() {
    std::vector<int> kept;
    for (const launch::Raise& raise : kernel_.fused_stores) {
      const auto target = binding_.source.cells.raised(raise);
      kept.push_back(target ? static_cast<int>(spec_.fused_stores.size()) : -1);
      if (target) spec_.fused_stores.push_back(*target);
    }
    for (std::size_t i = 0; i < kernel_.panels.size(); ++i) {
      const std::optional<std::int32_t> store = kernel_.panels[i].fused_store;
      spec_.panels[i].fused_store = store ? kept[static_cast<std::size_t>(*store)] : -1;
    }
  }

  const KernelBinding& binding_;
  const launch::Kernel& kernel_;
  GemmSpec spec_;
  std::vector<ChunkOfB> chunks_;
  bool waits_ = false;
};

}  // namespace

Checked<GemmSpec> bind_gemm(const KernelBinding& binding) { return GemmBinder(binding).bind(); }

}  // namespace harpe::cuda
