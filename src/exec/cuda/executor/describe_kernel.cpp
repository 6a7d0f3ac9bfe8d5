#include "exec/cuda/executor/describe_kernel.h"

#include <array>
#include <utility>

#include "exec/cuda/kernels/attention/attention_positions.h"
#include "exec/cuda/kernels/gemm/gemm_choice_text.h"
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

// Of a kernel that a task is on its own.
std::vector<launch::Place*> places_in(std::vector<launch::Kernel>& kernels) {
  std::vector<launch::Place*> places;
  for (launch::Kernel& kernel : kernels) {
    for (launch::Arrival& arrival : kernel.arrivals) {
      for (launch::Place& place : arrival.reads) places.push_back(&place);
    }
    for (launch::Panel& panel : kernel.panels) {
      for (launch::Place& place : panel.reads) places.push_back(&place);
      for (launch::Place& place : panel.stores) places.push_back(&place);
    }
  }
  return places;
}

class KernelDescriber {
 public:
  KernelDescriber(const SpecSource& source, std::span<const LaidRef> refs)
      : source_(source), refs_(refs) {}

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
    for (const GemmPanelSpec& from : spec.panels) {
      launch::Panel panel{.dtype = dtype_of(spec.out), .adds = spec.add};
      for (const GemmPieceSpec& piece : from.pieces) {
        panel.meets.push_back(static_cast<std::int32_t>(kernel_.arrivals.size()));
        kernel_.arrivals.push_back(
            {.reads = find_all({array_a(spec, from, piece), array_b(spec, from, piece)}),
             .when = {}});
      }
      panel.stores = find_all({array_c(spec, from)});
      kernel_.panels.push_back(std::move(panel));
    }
  }

  void add(const AttentionSpec& spec) {
    for (const AttentionChunkSpec& chunk : spec.chunks) {
      kernel_.arrivals.push_back(
          {.reads = find_all({array_keys(spec, chunk), array_values(spec, chunk)}), .when = {}});
    }
    for (const AttentionPanelSpec& from : spec.panels) {
      const device::Element out = spec.to_state ? device::Element::F32 : spec.element;
      launch::Panel panel{.dtype = dtype_of(out)};
      for (std::size_t i = 0; i < spec.chunks.size(); ++i) {
        if (!is_hidden(spec, from, spec.chunks[i])) panel.meets.push_back(static_cast<int>(i));
      }
      std::vector<StridedArray> reads = {array_queries(spec, from)};
      if (spec.carried) {
        reads.push_back(array_carried(spec, from));
        reads.push_back(array_carried_lse(spec, from));
      }
      std::vector<StridedArray> stores = {array_output(spec, from)};
      if (from.lse.address != 0) stores.push_back(array_lse(spec, from));
      panel.reads = find_all(reads);
      panel.stores = find_all(stores);
      kernel_.panels.push_back(std::move(panel));
    }
  }

  [[nodiscard]] Places find_all(const std::vector<StridedArray>& arrays) const {
    Places places;
    for (const StridedArray& array : arrays) {
      if (auto place = find_place(source_, refs_, array)) places.push_back(*std::move(place));
    }
    return places;
  }

  const SpecSource& source_;
  std::span<const LaidRef> refs_;
  launch::Kernel kernel_;
};

}  // namespace

std::string name_kernel(const LaunchSpec& spec) {
  return std::string(std::visit(KernelNamer{}, spec));
}

std::string print_parts(int parts) { return "keys cut " + std::to_string(parts); }

std::vector<LaidRef> lay_refs(RefLayouts& layouts, const Task& task) {
  std::vector<LaidRef> refs;
  for (const std::vector<Ref>* const all : {&task.writes, &task.reads}) {
    for (const Ref& ref : *all) refs.push_back(layouts.of(ref));
  }
  return refs;
}

std::vector<launch::Kernel> describe_kernels(const SpecSource& source,
                                             std::span<const LaidRef> refs,
                                             const std::vector<LaunchSpec>& specs) {
  std::vector<launch::Kernel> kernels;
  for (const LaunchSpec& spec : specs) {
    kernels.push_back(KernelDescriber(source, refs).describe(spec));
  }
  return kernels;
}

std::vector<launch::Kernel> kernels_like(const std::vector<LaidRef>& refs, const TaskAlone& like,
                                         std::vector<launch::Kernel> kernels) {
  for (launch::Place* const place : places_in(kernels)) {
    const std::size_t ref = find_ref(like.refs, *place);
    const LaidRef& from = like.refs[ref];
    const RefLayout::Part& part = *from.find(place->span);
    place->alloc = refs[ref].alloc;
    for (std::size_t axis = 0; axis < place->span.size(); ++axis) {
      const std::int64_t moved = shift_along(from, refs[ref], part, axis);
      place->span[axis].begin += moved;
      place->span[axis].end += moved;
    }
  }
  return kernels;
}

TaskAlone describe_alone(const SpecSource& source, TaskId task, std::vector<LaunchSpec> specs) {
  TaskAlone alone{.specs = std::move(specs),
                  .kernels = {},
                  .refs = lay_refs(source.layouts, source.plan.tasks[task.index()])};
  alone.kernels = describe_kernels(source, alone.refs, alone.specs);
  return alone;
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
