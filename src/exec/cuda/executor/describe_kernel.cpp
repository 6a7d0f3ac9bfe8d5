#include "exec/cuda/executor/describe_kernel.h"

#include <array>

#include "exec/cuda/actions/attention_positions.h"
#include "exec/cuda/actions/loop_nests.h"
#include "exec/cuda/gemm_choice_text.h"
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

std::string_view name_of(PlainKernel kernel) {
  constexpr std::array<const char*, 12> kNames = {
      "move",           "map",           "combine",     "join",
      "rowdot",         "gemm",          "attention",   "attention_backward",
      "choose_experts", "limit_choices", "gather_rows", "combine_rows"};
  return kNames[static_cast<std::size_t>(kernel)];
}

struct KernelNamer {
  std::string_view operator()(const PlainLaunch& plain) const { return name_of(plain.kernel); }
  std::string_view operator()(const CopyLaunch&) const { return "copy_engine"; }
  std::string_view operator()(const library::NcclCall&) const { return "nccl"; }
  std::string_view operator()(const BackwardSpec&) const { return kBackwardSm90; }
  std::string_view operator()(const GemmSpec& spec) const {
    if (spec.engine == LeafEngine::Library) return kCublasLtGemm;
    return has_groups(spec) ? std::string_view("grouped_gemm") : kGemmSm90;
  }
  std::string_view operator()(const AttentionSpec& spec) const {
    return spec.engine == LeafEngine::Library ? kCudnnAttention : kAttentionSm90;
  }
};

class KernelDescriber {
 public:
  KernelDescriber(const KernelPlaces& places, const SignalNames& names)
      : places_(places), names_(names) {}

  launch::Kernel describe(const LaunchSpec& spec) {
    kernel_.name = name_kernel(spec);
    std::visit([&](const auto& one) { add(one); }, spec);
    return std::move(kernel_);
  }

 private:
  void add(const PlainLaunch& plain) { kernel_.joins = static_cast<std::int32_t>(plain.places); }
  void add(const CopyLaunch&) {}
  void add(const library::NcclCall&) {}
  void add(const BackwardSpec&) {}

  void add(const GemmSpec& spec) {
    for (const device::RaiseTarget& target : spec.fused_stores) {
      kernel_.fused_stores.push_back(names_.raised(target));
    }
    for (const GemmPanelSpec& panel : spec.panels) add_panel(spec, panel);
    add_copies(spec.copies, spec.copy_blocks);
  }

  void add_panel(const GemmSpec& spec, const GemmPanelSpec& from) {
    launch::Panel panel{.dtype = dtype_of(spec.out), .adds = spec.add};
    for (const GemmPieceSpec& piece : from.pieces) {
      panel.meets.push_back(static_cast<std::int32_t>(kernel_.arrivals.size()));
      launch::Arrival arrival{.reads = {}, .when = names_.awaited(piece.ready)};
      add_place(array_a(spec, from, piece), arrival.reads);
      add_place(array_b(spec, from, piece), arrival.reads);
      kernel_.arrivals.push_back(std::move(arrival));
    }
    for (const GemmAddendSpec& addend : from.addends) {
      Places reads;
      add_place(array_addend(spec, from, addend), reads);
      if (reads.empty()) continue;
      panel.addends.push_back({.reads = reads.front(), .when = names_.awaited(addend.ready)});
    }
    add_place(array_c(spec, from), panel.stores);
    if (from.fused_store >= 0) panel.fused_store = from.fused_store;
    kernel_.panels.push_back(std::move(panel));
  }

  void add(const AttentionSpec& spec) {
    for (const AttentionChunkSpec& chunk : spec.chunks) {
      launch::Arrival arrival{.reads = {}, .when = names_.awaited(chunk.ready)};
      add_place(array_keys(spec, chunk), arrival.reads);
      add_place(array_values(spec, chunk), arrival.reads);
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
    add_place(array_queries(spec, from), panel.reads);
    if (spec.carried) {
      add_place(array_carried(spec, from), panel.reads);
      add_place(array_carried_lse(spec, from), panel.reads);
    }
    add_place(array_output(spec, from), panel.stores);
    if (from.lse.address != 0) add_place(array_lse(spec, from), panel.stores);
    kernel_.panels.push_back(std::move(panel));
  }

  void add_copies(const std::vector<device::CopyJob>& copies, int blocks) {
    for (const device::CopyJob& job : copies) {
      Places places;
      for (const void* const side : {job.from, static_cast<const void*>(job.to)}) {
        add_place(array_bytes(address_of(side), job.bytes), places);
      }
      if (places.size() < 2) continue;
      launch::FusedCopy copy{.from = places[0], .to = places[1], .raises = std::nullopt};
      if (job.done != nullptr) copy.raises = names_.raised({job.done, nullptr, 1}).signal;
      kernel_.fused_copies.push_back(std::move(copy));
    }
    kernel_.copy_blocks = blocks;
  }

  void add_place(const StridedArray& array, Places& places) const {
    if (const auto place = places_.find(array)) places.push_back(*place);
  }

  const KernelPlaces& places_;
  const SignalNames& names_;
  launch::Kernel kernel_;
};

}  // namespace

std::string name_kernel(const LaunchSpec& spec) {
  return std::string(std::visit(KernelNamer{}, spec));
}

std::string print_parts(int parts) { return "keys cut " + std::to_string(parts); }

launch::Kernel describe_kernel(const LaunchSpec& spec, const KernelPlaces& places,
                               const SignalNames& names) {
  return KernelDescriber(places, names).describe(spec);
}

std::string describe_variant(const LaunchSpec& spec, int multiprocessors) {
  if (is_by_library(spec)) return "";
  if (const auto* const product = std::get_if<GemmSpec>(&spec)) {
    return print(choose_gemm(*product, multiprocessors));
  }
  const auto* const heads = std::get_if<AttentionSpec>(&spec);
  return heads != nullptr && heads->parts > 1 ? print_parts(heads->parts) : "";
}

}  // namespace harpe::cuda
