#include "exec/cuda/kernels/gemm/bind_gemm.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/kernels/gemm/gemm_arrays.h"
#include "exec/cuda/kernels/loop_nests.h"

namespace harpe::cuda {
namespace {

device::Element element_of(DType dtype) { return half_of(dtype).value_or(device::Element::F32); }

bool have_one_shape(const GemmSpec& one, const GemmSpec& other) {
  return one.n == other.n && one.in == other.in && one.layout == other.layout &&
         one.m_major == other.m_major && one.engine == other.engine;
}

// Whether the K chunks cover columns 0 .. k of A once.
bool are_columns(std::vector<GemmKChunkSpec> k_chunks, std::int64_t k) {
  std::ranges::sort(k_chunks, {}, &GemmKChunkSpec::k_begin);
  std::int64_t end = 0;
  for (const GemmKChunkSpec& k_chunk : k_chunks) {
    if (k_chunk.k_begin != end) return false;
    end += k_chunk.k_count;
  }
  return end == k;
}

class GemmBinder {
 public:
  explicit GemmBinder(const KernelBinding& binding)
      : binding_(binding), kernel_(binding.kernel()) {}

  Checked<GemmSpec> bind() {
    for (const launch::Panel& panel : kernel_.panels) {
      const std::optional<std::size_t> of = find_rows(panel);
      HP_REQUIRE_OK(of ? share_rows(panel, *of) : add_panel(panel));
    }
    HP_REQUIRE_OK(place_b());
    add_fused_stores();
    HP_TRY(spec_.copies, binding_.copies());
    spec_.copy_blocks = kernel_.copy_blocks;
    const bool signals = waits_ || !spec_.fused_stores.empty() || !spec_.copies.empty();
    if (signals) spec_.wait = binding_.wait_context();
    return std::move(spec_);
  }

 private:
  // The address of the B that one K chunk meets.
  struct ChunkOfB {
    std::size_t panel = 0;
    std::size_t k_chunk = 0;
    DeviceAddress address = 0;
  };

  // The task's GEMM that multiplies the arrival for the panel.
  [[nodiscard]] LaunchAlone* find(const launch::Panel& panel, const launch::Arrival& arrival) {
    const auto found = find_around(binding_.alone(), next_, [&](const LaunchAlone& alone) {
      return !alone.is_bound && alone.spec->find<GemmSpec>() != nullptr &&
             are_elements(alone.arrival().reads, arrival.reads) &&
             are_elements(alone.panel().stores, panel.stores);
    });
    if (!found) return nullptr;
    next_ = *found + 1;
    return &binding_.alone()[*found];
  }

  // The earlier panel whose rows `panel` shares: it has the same K chunks, or, if `panel` has none,
  // it stores the same elements.
  [[nodiscard]] std::optional<std::size_t> find_rows(const launch::Panel& panel) const {
    for (std::size_t i = 0; i < alone_.size(); ++i) {
      const launch::Panel& before = kernel_.panels[i];
      const bool is_sum =
          panel.meets.empty() && before.stores.front().span == panel.stores.front().span;
      if (spec_.panels[i].rows_of < 0 && (is_sum || before.meets == panel.meets)) return i;
    }
    return std::nullopt;
  }

  // Whether `panel` computes nothing and only stores the other panel's result at a second place.
  static bool repeats(const launch::Panel& panel, const launch::Panel& other) {
    return panel.meets.empty() && panel.addends.size() == 1 && !panel.addends.front().when &&
           panel.addends.front().reads == other.stores;
  }

  Checked<Ok> share_rows(const launch::Panel& panel, std::size_t of) {
    const LaunchAlone& alone = *alone_[of];
    alone_.push_back(&alone);
    HP_REQUIRE_OK(begin_panel(alone, panel));
    spec_.panels.back().rows_of = static_cast<int>(of);
    spec_.panels.back().is_copy = repeats(panel, kernel_.panels[of]);
    if (!spec_.panels.back().is_copy) HP_REQUIRE_OK(add_addends(alone, panel));
    return add_maps(alone, panel);
  }

  Checked<Ok> add_panel(const launch::Panel& panel) {
    std::int64_t k = 0;
    LaunchAlone* alone = nullptr;
    for (const std::int32_t index : panel.meets) {
      const launch::Arrival& arrival = kernel_.arrivals[static_cast<std::size_t>(index)];
      alone = find(panel, arrival);
      if (alone == nullptr) return binding_.refuse("none of them multiplies what it multiplies");
      alone->is_bound = true;
      const auto& gemm = alone->spec->get<GemmSpec>();
      if (spec_.panels.empty()) begin(gemm, panel);
      if (!have_one_shape(gemm, spec_) || panel.adds != spec_.add) {
        return binding_.refuse("their GEMMs differ in shape or type");
      }
      if (k == 0) HP_REQUIRE_OK(begin_panel(*alone, panel));
      HP_REQUIRE_OK(add_k_chunk(*alone, arrival));
      k += gemm.k;
    }
    if (k == 0 || (spec_.panels.size() > 1 && k != spec_.k)) {
      return binding_.refuse("its panels differ in K");
    }
    spec_.k = k;
    alone_.push_back(alone);
    HP_REQUIRE_OK(add_addends(*alone, panel));
    return add_maps(*alone, panel);
  }

  void begin(const GemmSpec& gemm, const launch::Panel& panel) {
    spec_ = gemm;
    spec_.panels.clear();
    spec_.out = element_of(panel.dtype);
    spec_.add = panel.adds;
  }

  Checked<Ok> begin_panel(const LaunchAlone& alone, const launch::Panel& panel) {
    const std::vector<launch::Place>& from = alone.panel().stores;
    GemmPanelSpec& bound = spec_.panels.emplace_back(alone.spec->get<GemmSpec>().panels.front());
    HP_TRY(const StridedArray c,
           binding_.place(alone, {array_c(spec_, bound), "rows of C", 0}, from, panel.stores));
    bound.k_chunks.clear();
    bound.c = c.address;
    bound.c_stride = c.extents.front().stride;
    if (!from.empty()) move_number(from.front().alloc, panel.stores.front().alloc, bound.used);
    return Ok{};
  }

  // Stores the number of rows in use at the allocation that the rows are stored in.
  void move_number(AllocId from, AllocId to, device::UsedRows& used) const {
    if (from == to || used.result == nullptr) return;
    std::int32_t* const there = binding_.rows_used_of(to);
    used.result = there == nullptr ? nullptr : there + (used.result - binding_.rows_used_of(from));
  }

  Checked<Ok> add_k_chunk(const LaunchAlone& alone, const launch::Arrival& arrival) {
    const auto& gemm = alone.spec->get<GemmSpec>();
    const GemmPanelSpec& panel = gemm.panels.front();
    GemmKChunkSpec k_chunk = panel.k_chunks.front();
    const std::vector<launch::Place>& from = alone.arrival().reads;
    HP_TRY(const StridedArray a,
           binding_.place(alone, {array_a(gemm, panel, k_chunk), "rows of A", 0}, from,
                          arrival.reads));
    HP_TRY(const StridedArray b,
           binding_.place(alone, {array_b(gemm, panel, k_chunk), "rows of B", 1}, from,
                          arrival.reads));
    k_chunk.a = a.address;
    k_chunk.stride = (gemm.m_major ? a.extents.back() : a.extents.front()).stride;
    k_chunk.ready = binding_.await(arrival.when);
    waits_ = waits_ || arrival.when;
    spec_.panels.back().k_chunks.push_back(k_chunk);
    if (chunks_.empty()) {
      spec_.b_stride = b.extents.front().stride;
      spec_.b_is_fixed = true;
    }
    spec_.b_is_fixed =
        spec_.b_is_fixed && arrival.reads.size() > 1 && binding_.is_fixed(arrival.reads[1]);
    if (b.extents.front().stride != spec_.b_stride) {
      return binding_.refuse("their B's have rows that are not equally far apart");
    }
    chunks_.push_back({.panel = spec_.panels.size() - 1,
                       .k_chunk = spec_.panels.back().k_chunks.size() - 1,
                       .address = b.address});
    return Ok{};
  }

  // Addends have C's layout and the type of A.
  Checked<Ok> add_addends(const LaunchAlone& alone, const launch::Panel& panel) {
    GemmPanelSpec& bound = spec_.panels.back();
    GemmSpec like = alone.spec->get<GemmSpec>();
    like.out = like.in;
    for (const launch::Addend& addend : panel.addends) {
      HP_TRY(const StridedArray from,
             binding_.place(alone, {array_c(like, like.panels.front()), "addends", 0},
                            alone.panel().stores, addend.reads));
      bound.addends.push_back({.address = from.address,
                               .stride = from.extents.front().stride,
                               .ready = binding_.await(addend.when),
                               .is_in_data = addend.when && binding_.is_in_data(*addend.when)});
      waits_ = waits_ || addend.when;
    }
    return Ok{};
  }

  // Maps of C; their second operands have the type of A.
  Checked<Ok> add_maps(const LaunchAlone& alone, const launch::Panel& panel) {
    GemmPanelSpec& bound = spec_.panels.back();
    const auto& gemm = alone.spec->get<GemmSpec>();
    std::vector<GemmMapSpec> maps;
    for (const launch::Map& map : panel.maps) {
      HP_TRY(const BoundMap from, binding_.bind_map(alone, array_c(gemm, gemm.panels.front()),
                                                    alone.panel().stores.front(), map));
      GemmMapSpec& to = maps.emplace_back(GemmMapSpec{.leaf = from.leaf});
      GemmMapOperandSpec& operand = bound.map_operands.emplace_back();
      if (from.is_second && from.leaf != Leaf::Add && from.leaf != Leaf::Mul) {
        return binding_.refuse("its result is no first operand of its map");
      }
      if (!from.other) continue;
      if (half_of(from.dtype) != spec_.in || from.other->extents.back().stride != 1) {
        return binding_.refuse("an operand of its map lies otherwise than rows of the type of A");
      }
      operand = {.address = from.other->address, .stride = from.other->extents.front().stride};
      to.is_row = operand.stride == 0;
    }
    if (spec_.panels.size() == 1) spec_.maps = maps;
    if (spec_.maps != maps) return binding_.refuse("its panels differ in their maps");
    return Ok{};
  }

  // Finds one B for all panels, or with groups one array that has every group's B; otherwise each
  // K chunk gets its own B.
  Checked<Ok> place_b() {
    const bool is_n_major = spec_.layout == device::GemmLayout::NMajor;
    const std::int64_t element = device::bytes_of(spec_.in);
    const bool has_own = has_groups(spec_) && spec_.panels.size() > 1;
    const std::int64_t rows = is_n_major ? spec_.k : spec_.n;
    const std::int64_t row_bytes = spec_.b_stride * element;
    spec_.b = std::ranges::min(chunks_, {}, &ChunkOfB::address).address;
    if (!has_own) {
      place_k_chunks(is_n_major ? row_bytes : element);
      return Ok{};
    }
    for (const ChunkOfB& chunk : chunks_) {
      const auto behind = static_cast<std::int64_t>(chunk.address - spec_.b);
      if (behind % row_bytes != 0) return binding_.refuse("their B's are not of one array");
      spec_.panels[chunk.panel].b_first = behind / row_bytes;
      spec_.b_rows = std::max(spec_.b_rows, behind / row_bytes + rows);
    }
    return Ok{};
  }

  // K chunks may be used in any order, so the offset of a chunk's B in the common array gives its
  // columns of A. `step`: bytes of B from one column of A to the next.
  void place_k_chunks(std::int64_t step) {
    bool is_one = true;
    for (const ChunkOfB& chunk : chunks_) {
      const auto behind = static_cast<std::int64_t>(chunk.address - spec_.b);
      is_one = is_one && behind % step == 0;
      k_chunk_of(chunk).k_begin = behind / step;
    }
    const auto are_all = [&](const GemmPanelSpec& panel) {
      return panel.k_chunks.empty() || are_columns(panel.k_chunks, spec_.k);
    };
    if (is_one && std::ranges::all_of(spec_.panels, are_all)) return;
    std::vector<std::int64_t> used(spec_.panels.size(), 0);
    for (const ChunkOfB& chunk : chunks_) {
      GemmKChunkSpec& k_chunk = k_chunk_of(chunk);
      k_chunk.b = chunk.address;
      k_chunk.k_begin = used[chunk.panel];
      used[chunk.panel] += k_chunk.k_count;
    }
  }

  [[nodiscard]] GemmKChunkSpec& k_chunk_of(const ChunkOfB& chunk) {
    return spec_.panels[chunk.panel].k_chunks[chunk.k_chunk];
  }

  // Leaves out fused stores whose signals tests drop.
  void add_fused_stores() {
    std::vector<int> kept;
    for (const launch::Raise& raise : kernel_.fused_stores) {
      const auto target = binding_.raised(raise);
      kept.push_back(target ? static_cast<int>(spec_.fused_stores.size()) : -1);
      if (target) spec_.fused_stores.push_back(*target);
    }
    for (std::size_t i = 0; i < kernel_.panels.size(); ++i) {
      const std::optional<std::int32_t> store = kernel_.panels[i].fused_store;
      GemmPanelSpec& panel = spec_.panels[i];
      panel.fused_store = store ? kept[static_cast<std::size_t>(*store)] : -1;
      panel.is_in_data =
          store &&
          binding_.is_in_data(kernel_.fused_stores[static_cast<std::size_t>(*store)].signal);
      if (panel.is_in_data && panel.fused_store < 0) panel.c = 0;
    }
  }

  const KernelBinding& binding_;
  const launch::Kernel& kernel_;
  GemmSpec spec_;
  std::vector<const LaunchAlone*> alone_;  // for each panel
  std::vector<ChunkOfB> chunks_;
  std::size_t next_ = 0;  // where find starts, since panels are mostly in the order of their tasks
  bool waits_ = false;
};

}  // namespace

Checked<GemmSpec> bind_gemm(const KernelBinding& binding) { return GemmBinder(binding).bind(); }

}  // namespace harpe::cuda
