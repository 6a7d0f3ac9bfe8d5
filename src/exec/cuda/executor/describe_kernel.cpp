#include "exec/cuda/executor/describe_kernel.h"

#include <array>

#include "exec/cuda/actions/loop_nests.h"
#include "offers/gpu_kernels.h"

namespace harpe::cuda {
namespace {

using Places = std::vector<launch::Place>;

DType dtype_of(device::Element element) {
  switch (element) {
    case device::Element::F32:
      return DType::F32;
    case device::Element::F16:
      return DType::F16;
    default:
      return DType::BF16;
  }
}

std::string name_of(PlainKernel kernel) {
  constexpr std::array<const char*, 12> kNames = {
      "move",           "map",           "combine",     "join",
      "rowdot",         "gemm",          "attention",   "attention_backward",
      "choose_experts", "limit_choices", "gather_rows", "combine_rows"};
  return kNames[static_cast<std::size_t>(kernel)];
}

class KernelDescriber {
 public:
  KernelDescriber(int multiprocessors, const KernelPlaces& places, const SignalNames& names)
      : multiprocessors_(multiprocessors), places_(places), names_(names) {}

  launch::Kernel describe(const LaunchSpec& spec) {
    std::visit([&](const auto& one) { add(one); }, spec);
    return std::move(kernel_);
  }

 private:
  void add(const PlainLaunch& plain) { kernel_.name = name_of(plain.kernel); }
  void add(const CopyLaunch&) { kernel_.name = "copy_engine"; }
  void add(const library::NcclCall&) { kernel_.name = "nccl"; }
  void add(const BackwardSpec&) { kernel_.name = kBackwardSm90; }

  void add(const GemmSpec& spec) {
    const bool is_own = spec.engine == LeafEngine::Own;
    kernel_.name = !is_own ? kCublasLtGemm : has_groups(spec) ? "grouped_gemm" : kGemmSm90;
    if (is_own) describe_choice(choose_gemm(spec, multiprocessors_));
    for (const device::RaiseTarget& target : spec.fused_stores) {
      kernel_.fused_stores.push_back(names_.raised(target));
    }
    for (const GemmPanelSpec& panel : spec.panels) add_panel(spec, panel);
    add_copies(spec.copies, spec.copy_blocks);
  }

  void describe_choice(const GemmChoice& choice) {
    const device::GemmConfig& config = choice.config;
    kernel_.variant = "tile " + std::to_string(config.tile_m) + "x" +
                      std::to_string(config.tile_n) + " stages " + std::to_string(config.stages) +
                      (config.ping_pong ? " ping-pong" : "");
    if (choice.parts == 1) return;
    kernel_.variant += " cut " + std::to_string(choice.parts) + " behind tile " +
                       std::to_string(choice.full_tiles);
  }

  void add_panel(const GemmSpec& spec, const GemmPanelSpec& from) {
    launch::Panel panel{.dtype = dtype_of(spec.out), .adds = spec.add};
    for (const GemmPieceSpec& piece : from.pieces) {
      panel.meets.push_back(static_cast<std::int32_t>(kernel_.arrivals.size()));
      launch::Arrival arrival{.reads = {}, .when = names_.awaited(piece.ready)};
      add_place(piece.a, spec.in, {{from.rows, piece.stride}, {piece.k_count, 1}}, arrival.reads);
      add_b(spec, from, piece, arrival.reads);
      kernel_.arrivals.push_back(std::move(arrival));
    }
    for (const GemmAddendSpec& addend : from.addends) {
      Places reads;
      add_place(addend.address, spec.in, {{from.rows, addend.stride}, {spec.n, 1}}, reads);
      if (reads.empty()) continue;
      panel.addends.push_back({.reads = reads.front(), .when = names_.awaited(addend.ready)});
    }
    add_place(from.c, spec.out, {{from.rows, from.c_stride}, {spec.n, 1}}, panel.stores);
    if (from.fused_store >= 0) panel.fused_store = from.fused_store;
    kernel_.panels.push_back(std::move(panel));
  }

  // The rows of B that a K chunk meets.
  void add_b(const GemmSpec& spec, const GemmPanelSpec& panel, const GemmPieceSpec& piece,
             Places& reads) const {
    const bool is_n_major = spec.layout == device::GemmLayout::NMajor;
    const std::int64_t first = panel.b_first * spec.b_stride +
                               (is_n_major ? piece.k_begin * spec.b_stride : piece.k_begin);
    const DeviceAddress b = spec.b + static_cast<DeviceAddress>(first * device::bytes_of(spec.in));
    const std::int64_t rows = is_n_major ? piece.k_count : spec.n;
    const std::int64_t columns = is_n_major ? spec.n : piece.k_count;
    add_place(b, spec.in, {{rows, spec.b_stride}, {columns, 1}}, reads);
  }

  void add(const AttentionSpec& spec) {
    const bool is_own = spec.engine == LeafEngine::Own;
    kernel_.name = is_own ? kAttentionSm90 : kCudnnAttention;
    if (is_own && spec.parts > 1) kernel_.variant = "keys cut " + std::to_string(spec.parts);
    for (const AttentionChunkSpec& chunk : spec.chunks) {
      launch::Arrival arrival{.reads = {}, .when = names_.awaited(chunk.ready)};
      add_heads(spec, chunk.keys, chunk.rows, spec.kv_heads, spec.query_dim, arrival.reads);
      add_heads(spec, chunk.values, chunk.rows, spec.kv_heads, spec.value_dim, arrival.reads);
      kernel_.arrivals.push_back(std::move(arrival));
    }
    for (const AttentionPanelSpec& panel : spec.panels) add_panel(spec, panel);
    add_copies(spec.copies, spec.copy_blocks);
  }

  void add_panel(const AttentionSpec& spec, const AttentionPanelSpec& from) {
    const device::Element out = spec.to_state ? device::Element::F32 : spec.element;
    launch::Panel panel{.dtype = dtype_of(out)};
    for (std::size_t i = 0; i < spec.chunks.size(); ++i) {
      if (!is_hidden(spec, from, spec.chunks[i])) panel.meets.push_back(static_cast<int>(i));
    }
    add_heads(spec, from.queries, from.rows, spec.heads, spec.query_dim, panel.reads);
    if (spec.carried) {
      add_heads(spec, from.carried_output, from.rows, spec.heads, spec.value_dim, panel.reads,
                device::Element::F32);
      HeadTensor carried_lse = from.lse;
      if (from.carried_lse != 0) carried_lse.address = from.carried_lse;
      add_heads(spec, carried_lse, from.rows, spec.heads, 1, panel.reads, device::Element::F32);
    }
    add_heads(spec, from.output, from.rows, spec.heads, spec.value_dim, panel.stores, out);
    if (from.lse.address != 0) {
      add_heads(spec, from.lse, from.rows, spec.heads, 1, panel.stores, device::Element::F32);
    }
    kernel_.panels.push_back(std::move(panel));
  }

  // Whether no query of the panel sees a key of the chunk.
  [[nodiscard]] static bool is_hidden(const AttentionSpec& spec, const AttentionPanelSpec& panel,
                                      const AttentionChunkSpec& chunk) {
    if (!spec.causal) return false;
    const std::int64_t oldest = panel.position - spec.window + 1;
    return chunk.position > panel.position + panel.rows - 1 ||
           (spec.window > 0 && chunk.position + chunk.rows - 1 < oldest);
  }

  void add_copies(const std::vector<device::CopyJob>& copies, int blocks) {
    for (const device::CopyJob& job : copies) {
      Places places;
      for (const void* const side : {job.from, static_cast<const void*>(job.to)}) {
        add_place(address_of(side), device::Element::BF16, {{job.bytes / 2, 1}}, places);
      }
      if (places.size() < 2) continue;
      launch::FusedCopy copy{.from = places[0], .to = places[1], .raises = std::nullopt};
      if (job.done != nullptr) copy.raises = names_.raised({job.done, nullptr, 1}).signal;
      kernel_.fused_copies.push_back(std::move(copy));
    }
    kernel_.copy_blocks = blocks;
  }

  void add_heads(const AttentionSpec& spec, const HeadTensor& tensor, std::int64_t rows,
                 std::int64_t heads, std::int64_t columns, Places& places,
                 std::optional<device::Element> element = std::nullopt) const {
    add_place(tensor.address, element.value_or(spec.element),
              {{spec.batch, tensor.strides.batch},
               {rows, tensor.strides.row},
               {heads, tensor.strides.head},
               {columns, 1}},
              places);
  }

  void add_place(DeviceAddress address, device::Element element,
                 std::vector<StridedArray::Extent> extents, Places& places) const {
    const auto place = places_.find({.address = address,
                                     .element_bytes = device::bytes_of(element),
                                     .extents = std::move(extents)});
    if (place) places.push_back(*place);
  }

  int multiprocessors_;
  const KernelPlaces& places_;
  const SignalNames& names_;
  launch::Kernel kernel_;
};

}  // namespace

launch::Kernel describe_kernel(const LaunchSpec& spec, int multiprocessors,
                               const KernelPlaces& places, const SignalNames& names) {
  return KernelDescriber(multiprocessors, places, names).describe(spec);
}

}  // namespace harpe::cuda
