#include <algorithm>

#include "exec/cuda/kernels/attention/attention_arrays.h"
#include "exec/cuda/kernels/attention/attention_positions.h"
#include "exec/cuda/kernels/attention/bind_attention.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/loop_nests.h"
#include "offers/gpu_kernels.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

// Our own kernels.
class AttentionLaunch : public LaunchOf<AttentionSpec> {
 public:
  using LaunchOf::LaunchOf;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<AttentionLaunch>(*this);
  }
  std::string_view name() const override { return kAttentionSm90; }
  Checked<Ok> check(int multiprocessors) const override {
    return cuda::check(spec, multiprocessors);
  }
  std::string choose(int /*multiprocessors*/) const override {
    if (spec.shares > 0) return print_shares(spec.shares, cut_heads(spec));
    return spec.parts > 1 ? print_parts(spec.parts) : "";
  }

  KernelArrays arrays() const override {
    KernelArrays arrays;
    for (const AttentionChunkSpec& chunk : spec.chunks) {
      arrays.arrivals.push_back({array_keys(spec, chunk), array_values(spec, chunk)});
    }
    for (const AttentionPanelSpec& from : spec.panels) {
      KernelArrays::Panel panel{.dtype = spec.to_state ? DType::F32 : dtype_of(spec.element)};
      for (std::size_t i = 0; i < spec.chunks.size(); ++i) {
        if (!is_hidden(spec, from, spec.chunks[i])) panel.meets.push_back(static_cast<int>(i));
      }
      panel.reads = {array_queries(spec, from)};
      for (StridedArray& table : arrays_tables(spec)) panel.reads.push_back(std::move(table));
      if (spec.carried) {
        panel.reads.push_back(array_carried(spec, from));
        panel.reads.push_back(array_carried_lse(spec, from));
      }
      panel.stores = {array_output(spec, from)};
      if (from.lse.address != 0) panel.stores.push_back(array_lse(spec, from));
      arrays.panels.push_back(std::move(panel));
    }
    return arrays;
  }

  Checked<LaunchSpec> bind(const KernelBinding& binding) const override {
    HP_TRY(AttentionSpec bound, bind_attention(binding));
    return LaunchSpec(std::move(bound));
  }

  // The kernel for few queries has one chunk, which it does not wait for. The only copies that it
  // can replace are those of its results.
  bool can_be_joined(bool takes_copies) const override {
    const bool takes = !takes_copies || !spec.results.empty();
    return spec.shares == 0 || (takes && can_decode(spec));
  }

  device::WaitContext* inner_wait() override {
    const bool waits =
        std::ranges::any_of(spec.chunks, [](const auto& chunk) { return chunk.ready.flag; });
    return waits || !spec.results.empty() ? &spec.wait : nullptr;
  }

  device::Bounds* bounds() override { return &spec.bounds; }

  void add_fixed(FixedWords& fixed) const override {
    fixed.add_table(std::as_bytes(std::span(spec.copies)));
  }

  bool store_in_16_bits(const Partial16& state) override {
    const bool fits =
        spec.to_state && !spec.carried && spec.panels.size() == 1 && spec.element == state.element;
    const auto there = state.find(spec.panels.front().output.address);
    if (!fits || !there) return false;
    spec.panels.front().output.address = *there;
    spec.to_state = false;
    return true;
  }
};

// cuDNN: it cannot wait inside its kernel, and it is alone in its launch.
class CudnnLaunch final : public AttentionLaunch {
 public:
  using AttentionLaunch::AttentionLaunch;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<CudnnLaunch>(*this);
  }
  std::string_view name() const override { return kCudnnAttention; }
  Checked<Ok> check(int /*multiprocessors*/) const override { return Ok{}; }
  std::string choose(int /*multiprocessors*/) const override { return ""; }

  device::Bounds* bounds() override { return nullptr; }

  bool can_be_joined(bool takes_copies) const override {
    return !takes_copies && spec.panels.size() == 1 && spec.chunks.size() == 1 &&
           spec.chunks.front().ready.flag == nullptr;
  }
  void add_fixed(FixedWords& fixed) const override {
    for (const AttentionPanelSpec& panel : spec.panels) {
      fixed.words.insert(fixed.words.end(),
                         {panel.queries.address, panel.output.address, panel.lse.address,
                          panel.carried_output.address, panel.carried_lse});
    }
    for (const AttentionChunkSpec& chunk : spec.chunks) {
      fixed.words.insert(fixed.words.end(), {chunk.keys.address, chunk.values.address});
    }
  }
};

}  // namespace

std::unique_ptr<KernelLaunch> make_launch(AttentionSpec spec) {
  if (spec.engine == LeafEngine::Library) return std::make_unique<CudnnLaunch>(std::move(spec));
  return std::make_unique<AttentionLaunch>(std::move(spec));
}

}  // namespace harpe::cuda
