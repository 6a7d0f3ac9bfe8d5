#include "exec/cuda/executor/proposals.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/actions/loop_nests.h"

namespace harpe::cuda {
namespace {

using launch::Kernel;
using launch::Panel;
using launch::Place;

// Stands for the memory of a signal, which decides nothing.
constexpr std::uintptr_t kAnySignal = std::uintptr_t{1} << 61;
std::uint32_t* made_up_signal() { return reinterpret_cast<std::uint32_t*>(kAnySignal); }

device::FlagWait wait_for(const std::optional<launch::SignalId>& when) {
  return {.flag = when ? made_up_signal() : nullptr, .arrivals = 1, .name = 0};
}

std::optional<device::Element> element_of(DType dtype) {
  return dtype == DType::F32 ? device::Element::F32 : half_of(dtype);
}

// A GEMM of one panel and one K chunk that panels may be like, with its operands' places.
struct LikeGemm {
  const GemmSpec* spec = nullptr;
  LocatedPlace a;
  LocatedPlace b;
  LocatedPlace c;
};

std::optional<LocatedPlace> locate(const DescribedSpec& one, const Place& place) {
  for (const LaidRef& ref : *one.refs) {
    if (ref.alloc != place.alloc) continue;
    if (const RefLayout::Part* const part = ref.find(place.span)) {
      return LocatedPlace{.place = &place, .ref = &ref, .part = part};
    }
  }
  return std::nullopt;
}

std::vector<LikeGemm> locate_all(std::span<const DescribedSpec> like) {
  std::vector<LikeGemm> all;
  for (const DescribedSpec& one : like) {
    const Panel& panel = one.kernel->panels.front();
    const std::vector<Place>& reads = one.kernel->arrivals.front().reads;
    if (reads.size() != 2 || panel.stores.empty()) continue;
    const auto a = locate(one, reads[0]);
    const auto b = locate(one, reads[1]);
    const auto c = locate(one, panel.stores.front());
    if (a && b && c) {
      all.push_back({.spec = &std::get<GemmSpec>(*one.spec), .a = *a, .b = *b, .c = *c});
    }
  }
  return all;
}

class GemmBinder {
 public:
  GemmBinder(std::vector<LikeGemm> like, const Kernel& kernel, const LocatedPlaces& places)
      : like_(std::move(like)), kernel_(kernel), places_(places) {}

  std::optional<GemmSpec> bind() {
    if (like_.empty() || kernel_.panels.empty()) return std::nullopt;
    spec_ = *like_.front().spec;
    const std::optional<device::Element> out = element_of(kernel_.panels.front().dtype);
    if (!out) return std::nullopt;
    spec_.out = *out;
    spec_.add = kernel_.panels.front().adds;
    spec_.panels.clear();
    spec_.fused_stores.assign(kernel_.fused_stores.size(), {made_up_signal(), nullptr, 1});
    for (const Panel& panel : kernel_.panels) {
      if (panel.adds != spec_.add || !bind_panel(panel)) return std::nullopt;
    }
    spec_.copy_blocks = kernel_.copy_blocks;
    return std::move(spec_);
  }

 private:
  [[nodiscard]] bool bind_panel(const Panel& panel) {
    GemmPanelSpec one;
    const LikeGemm* last = nullptr;
    std::int64_t k = 0;
    for (const std::int32_t met : panel.meets) {
      last = bind_chunk(kernel_.arrivals[static_cast<std::size_t>(met)], k, one);
      if (last == nullptr) return false;
      k = one.pieces.back().k_begin + one.pieces.back().k_count;
    }
    if (last == nullptr || panel.stores.size() != 1) return false;
    if (spec_.panels.empty()) spec_.k = k;
    const auto store = move_result(*last, panel.stores.front());
    if (!store || k != spec_.k) return false;
    one.c = store->address;
    one.c_stride = store->extents[0].stride;
    for (const launch::Addend& addend : panel.addends) {
      const auto there = move_result(*last, addend.reads);
      if (!there) return false;
      one.addends.push_back({.address = there->address,
                             .stride = there->extents[0].stride,
                             .ready = wait_for(addend.when)});
    }
    one.fused_store = panel.fused_store.value_or(-1);
    spec_.panels.push_back(std::move(one));
    return true;
  }

  // What it is like; null where there is none, or it is not next to the chunk before.
  [[nodiscard]] const LikeGemm* bind_chunk(const launch::Arrival& arrival, std::int64_t k,
                                           GemmPanelSpec& panel) {
    if (arrival.reads.size() != 2) return nullptr;
    const auto a = places_.find(arrival.reads[0]);
    const auto b = places_.find(arrival.reads[1]);
    if (!a || !b) return nullptr;
    for (const LikeGemm& like : like_) {
      const GemmSpec& spec = *like.spec;
      const GemmPanelSpec& own = spec.panels.front();
      const GemmPieceSpec& piece = own.pieces.front();
      const auto at_a = places_.move({.address = piece.a,
                                      .element_bytes = device::bytes_of(spec.in),
                                      .extents = {{own.rows, piece.stride}, {spec.k, 1}}},
                                     like.a, *a);
      const bool rows_are_k = spec.layout == device::GemmLayout::NMajor;
      const auto at_b = places_.move({.address = spec.b,
                                      .element_bytes = device::bytes_of(spec.in),
                                      .extents = {{rows_are_k ? spec.k : spec.n, spec.b_stride},
                                                  {rows_are_k ? spec.n : spec.k, 1}}},
                                     like.b, *b);
      if (!at_a || !at_b || at_a->extents[1].stride != 1 || at_b->extents[1].stride != 1) continue;
      if (spec_.panels.empty() && panel.pieces.empty()) {
        spec_.b = at_b->address;
        spec_.b_stride = at_b->extents[0].stride;
      }
      const std::int64_t step = rows_are_k ? spec_.b_stride : 1;
      const auto behind = static_cast<DeviceAddress>(k * step * device::bytes_of(spec.in));
      const bool fits = spec.n == spec_.n && spec.in == spec_.in && spec.layout == spec_.layout &&
                        at_b->extents[0].stride == spec_.b_stride &&
                        at_b->address == spec_.b + behind &&
                        (panel.pieces.empty() || panel.rows == own.rows);
      if (!fits) continue;
      panel.rows = own.rows;
      panel.pieces.push_back({.a = at_a->address,
                              .stride = at_a->extents[0].stride,
                              .k_begin = k,
                              .k_count = spec.k,
                              .ready = wait_for(arrival.when)});
      return &like;
    }
    return nullptr;
  }

  // Where C, or what is added to it, lies.
  [[nodiscard]] std::optional<StridedArray> move_result(const LikeGemm& like,
                                                        const Place& place) const {
    const GemmSpec& spec = *like.spec;
    const GemmPanelSpec& own = spec.panels.front();
    const auto target = places_.find(place);
    if (!target) return std::nullopt;
    auto there = places_.move({.address = own.c,
                               .element_bytes = device::bytes_of(spec.out),
                               .extents = {{own.rows, own.c_stride}, {spec.n, 1}}},
                              like.c, *target);
    if (!there || there->extents[1].stride != 1) return std::nullopt;
    return there;
  }

  std::vector<LikeGemm> like_;
  const Kernel& kernel_;
  const LocatedPlaces& places_;
  GemmSpec spec_;
};

class AttentionMover {
 public:
  AttentionMover(const AttentionSpec& spec, const Kernel& from, const Kernel& kernel,
                 const LocatedPlaces& places)
      : adapted_(spec), from_(from), kernel_(kernel), places_(places) {}

  std::optional<AttentionSpec> adapt() {
    if (from_.arrivals.size() != kernel_.arrivals.size() ||
        from_.panels.size() != kernel_.panels.size()) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < adapted_.chunks.size(); ++i) {
      if (!adapt_chunk(i)) return std::nullopt;
    }
    for (std::size_t i = 0; i < adapted_.panels.size(); ++i) {
      const Panel& panel = kernel_.panels[i];
      const Panel& old = from_.panels[i];
      const bool is_one = old.reads == panel.reads && old.meets == panel.meets &&
                          !old.stores.empty() && old.stores.size() == panel.stores.size() &&
                          old.stores.front().span == panel.stores.front().span;
      if (!is_one || !adapt_panel(i)) return std::nullopt;
    }
    if (kernel_.panels.front().dtype != DType::F32) adapted_.to_state = false;
    return adapted_;
  }

 private:
  [[nodiscard]] bool move(HeadTensor& tensor, std::int64_t rows, std::int64_t heads,
                          std::int64_t columns, std::int64_t element_bytes, const Place& from,
                          const Place& to) const {
    if (from == to) return true;
    const auto source = places_.find(from);
    const auto target = places_.find(to);
    if (!source || !target) return false;
    const auto there = places_.move({.address = tensor.address,
                                     .element_bytes = element_bytes,
                                     .extents = {{adapted_.batch, tensor.strides.batch},
                                                 {rows, tensor.strides.row},
                                                 {heads, tensor.strides.head},
                                                 {columns, 1}}},
                                    *source, *target);
    if (!there || there->extents[3].stride != 1) return false;
    tensor = {.address = there->address,
              .strides = {.batch = there->extents[0].stride,
                          .row = there->extents[1].stride,
                          .head = there->extents[2].stride}};
    return true;
  }

  [[nodiscard]] bool adapt_chunk(std::size_t at) {
    AttentionChunkSpec& chunk = adapted_.chunks[at];
    const launch::Arrival& old = from_.arrivals[at];
    const launch::Arrival& arrival = kernel_.arrivals[at];
    if (old.reads.size() != 2 || arrival.reads.size() != 2) return false;
    const std::int64_t bytes = device::bytes_of(adapted_.element);
    chunk.ready = wait_for(arrival.when);
    return move(chunk.keys, chunk.rows, adapted_.kv_heads, adapted_.query_dim, bytes, old.reads[0],
                arrival.reads[0]) &&
           move(chunk.values, chunk.rows, adapted_.kv_heads, adapted_.value_dim, bytes,
                old.reads[1], arrival.reads[1]);
  }

  // A state that is carried on stays where it is: its lse is read with the steps of what is stored.
  [[nodiscard]] bool adapt_panel(std::size_t at) {
    constexpr std::int64_t kStateBytes = 4;
    AttentionPanelSpec& panel = adapted_.panels[at];
    const std::vector<Place>& old = from_.panels[at].stores;
    const std::vector<Place>& stores = kernel_.panels[at].stores;
    const HeadTensor lse = panel.lse;
    if (!move(panel.output, panel.rows, adapted_.heads, adapted_.value_dim, kStateBytes, old[0],
              stores[0])) {
      return false;
    }
    if (stores.size() < 2) return true;
    if (!move(panel.lse, panel.rows, adapted_.heads, 1, kStateBytes, old[1], stores[1])) {
      return false;
    }
    if (!adapted_.carried || old[1] == stores[1]) return true;
    panel.carried_lse = lse.address;
    return panel.lse.strides.row == lse.strides.row && panel.lse.strides.head == lse.strides.head &&
           (adapted_.batch == 1 || panel.lse.strides.batch == lse.strides.batch);
  }

  AttentionSpec adapted_;
  const Kernel& from_;
  const Kernel& kernel_;
  const LocatedPlaces& places_;
};

}  // namespace

std::optional<GemmSpec> bind_gemm(const SpecSource& source, std::span<const DescribedSpec> like,
                                  const Kernel& kernel, const LocatedPlaces& places) {
  std::optional<GemmSpec> bound = GemmBinder(locate_all(like), kernel, places).bind();
  if (!bound) return std::nullopt;
  // A partial state in 16 bits takes half the room, from where it begins.
  const AllocId stored = kernel.panels.front().stores.front().alloc;
  const Alloc& alloc = source.plan.allocs[stored.index()];
  if (alloc.dtype == DType::F32 && bound->out != device::Element::F32) {
    const DeviceAddress begin = address_of(source.bases.address(alloc));
    for (GemmPanelSpec& panel : bound->panels) panel.c = begin + (panel.c - begin) / 2;
  }
  return bound;
}

std::optional<GemmSpec> move_groups(const GemmSpec& spec, const Kernel& from, const Kernel& kernel,
                                    const LocatedPlaces& places) {
  if (from.arrivals != kernel.arrivals || from.panels.size() != kernel.panels.size()) {
    return std::nullopt;
  }
  GemmSpec moved = spec;
  const std::optional<device::Element> out = element_of(kernel.panels.front().dtype);
  if (!out) return std::nullopt;
  for (std::size_t i = 0; i < moved.panels.size(); ++i) {
    GemmPanelSpec& panel = moved.panels[i];
    if (from.panels[i].stores == kernel.panels[i].stores) continue;
    const auto old = places.find(from.panels[i].stores.front());
    const auto target = places.find(kernel.panels[i].stores.front());
    if (!old || !target) return std::nullopt;
    const auto there = places.move({.address = panel.c,
                                    .element_bytes = device::bytes_of(spec.out),
                                    .extents = {{panel.rows, panel.c_stride}, {spec.n, 1}}},
                                   *old, *target);
    if (!there || there->extents[1].stride != 1) return std::nullopt;
    panel.c = there->address;
    panel.c_stride = there->extents[0].stride;
  }
  moved.out = *out;
  if (has_groups(moved) && !stores_in_bulk(moved)) return std::nullopt;
  return moved;
}

std::optional<AttentionSpec> move_attention(const SpecSource& source, const AttentionSpec& spec,
                                            const Kernel& from, const Kernel& kernel,
                                            const LocatedPlaces& places) {
  std::optional<AttentionSpec> moved = AttentionMover(spec, from, kernel, places).adapt();
  const bool is_rounded = moved && spec.to_state && !moved->to_state;
  if (!is_rounded) return moved;
  const AllocId stored = kernel.panels.front().stores.front().alloc;
  const Alloc& alloc = source.plan.allocs[stored.index()];
  if (alloc.dtype != DType::F32) return moved;
  const DeviceAddress begin = address_of(source.bases.address(alloc));
  for (AttentionPanelSpec& panel : moved->panels) {
    panel.output.address = begin + (panel.output.address - begin) / 2;
  }
  return moved;
}

}  // namespace harpe::cuda
