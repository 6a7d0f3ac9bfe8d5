#include <algorithm>

#include "exec/cuda/kernels/gemm/bind_gemm.h"
#include "exec/cuda/kernels/gemm/gemm_arrays.h"
#include "exec/cuda/kernels/gemm/gemm_choice_text.h"
#include "exec/cuda/kernels/loop_nests.h"
#include "offers/gpu_kernels.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

constexpr std::string_view kGroupedGemm = "grouped_gemm";

static_assert(kMostJoined == device::GemmConfig::kMostPanels);

// The address range of `rows` rows of `columns` elements, `stride` elements apart.
AddressRange rows_at(DeviceAddress address, std::int64_t rows, std::int64_t columns,
                     std::int64_t stride, device::Element element) {
  return range_of(address, ((rows - 1) * stride + columns) * device::bytes_of(element));
}

bool has_used_rows(const GemmSpec& spec) {
  return spec.panels.size() == 1 && spec.panels.front().used.rows != nullptr;
}

bool are_alike(const GemmSpec& one, const GemmSpec& other) {
  // GEMMs without a count of rows in use are faster with a cut and a walk of their own.
  return has_used_rows(one) && has_used_rows(other) && one.n == other.n && one.k == other.k &&
         one.in == other.in && one.out == other.out && one.add == other.add &&
         one.layout == other.layout && one.b_stride == other.b_stride;
}

// Joins GEMMs, each with its own B, into one grouped GEMM. Those that share a B follow each other,
// while its columns are in the L2 cache. None if no kernel can run it.
std::optional<LaunchSpec> as_groups(std::span<const LaunchSpec> run) {
  constexpr int kFewBlocks = 2;  // enough, since the GEMM has no fused copies
  GemmSpec groups = run.front().get<GemmSpec>();
  groups.panels.clear();
  for (const LaunchSpec& launch : run) groups.b = std::min(groups.b, launch.get<GemmSpec>().b);
  const std::int64_t row_bytes = groups.b_stride * device::bytes_of(groups.in);
  const std::int64_t rows = groups.layout == device::GemmLayout::NMajor ? groups.k : groups.n;
  for (const LaunchSpec& launch : run) {
    const auto& product = launch.get<GemmSpec>();
    const auto moved = static_cast<std::int64_t>(product.b - groups.b);
    if (moved % row_bytes != 0) return std::nullopt;
    groups.panels.push_back(product.panels.front());
    groups.panels.back().b_first = moved / row_bytes;
    groups.b_rows = std::max(groups.b_rows, moved / row_bytes + rows);
  }
  std::ranges::stable_sort(groups.panels, {}, &GemmPanelSpec::b_first);
  if (!check(groups, kFewBlocks).ok()) return std::nullopt;
  return LaunchSpec(std::move(groups));
}

void add_panels(const GemmSpec& spec, std::vector<DeviceAddress>& words) {
  for (const GemmPanelSpec& panel : spec.panels) {
    words.push_back(panel.c);
    for (const GemmKChunkSpec& k_chunk : panel.k_chunks) {
      words.push_back(k_chunk.a);
      if (k_chunk.b != 0) words.push_back(k_chunk.b);
    }
    for (const GemmAddendSpec& addend : panel.addends) words.push_back(addend.address);
  }
}

// Our own kernels.
class GemmLaunch : public LaunchOf<GemmSpec> {
 public:
  using LaunchOf::LaunchOf;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<GemmLaunch>(*this);
  }
  std::string_view name() const override { return has_groups(spec) ? kGroupedGemm : kGemmSm90; }
  bool makes(std::string_view kernel) const override {
    return kernel == name() || kernel == kGroupedGemm;
  }
  Checked<Ok> check(int multiprocessors) const override {
    return cuda::check(spec, multiprocessors);
  }
  std::string choose(int multiprocessors) const override {
    return print(choose_gemm(spec, multiprocessors));
  }
  bool has_variant(std::string_view variant) const override {
    return find_gemm_choice(spec, variant).has_value();
  }

  KernelArrays arrays() const override {
    KernelArrays arrays;
    for (const GemmPanelSpec& from : spec.panels) {
      KernelArrays::Panel panel{.dtype = dtype_of(spec.out), .adds = spec.add};
      for (const GemmKChunkSpec& k_chunk : from.k_chunks) {
        panel.meets.push_back(static_cast<std::int32_t>(arrays.arrivals.size()));
        arrays.arrivals.push_back({array_a(spec, from, k_chunk), array_b(spec, from, k_chunk)});
      }
      panel.stores = {array_c(spec, from)};
      arrays.panels.push_back(std::move(panel));
    }
    return arrays;
  }

  Checked<LaunchSpec> bind(const KernelBinding& binding) const override {
    HP_TRY(GemmSpec bound, bind_gemm(binding));
    return LaunchSpec(std::move(bound));
  }

  bool takes_maps() const override { return true; }

  // Groups that share a B must be neighbours, as `join` orders them.
  bool can_be_joined(bool /*takes_copies*/) const override {
    return std::ranges::is_sorted(spec.panels, {}, &GemmPanelSpec::b_first);
  }

  device::WaitContext* inner_wait() override {
    const bool waits = std::ranges::any_of(spec.panels, [](const GemmPanelSpec& panel) {
      return awaits_rows(panel) || std::ranges::any_of(panel.addends, [](const auto& addend) {
               return addend.ready.flag != nullptr;
             });
    });
    return waits ? &spec.wait : nullptr;
  }

  device::Bounds* bounds() override { return &spec.bounds; }

  void add_fixed(FixedWords& fixed) const override {
    if (!has_copies_in_arguments(spec)) fixed.add_table(std::as_bytes(std::span(spec.copies)));
    if (!fit_in_arguments(spec)) add_panels(spec, fixed.words);
    if (spec.b_rows == 0) return;  // the groups' B are in one array, at fixed distances
    const std::int64_t bytes = spec.b_rows * spec.b_stride * device::bytes_of(spec.in);
    fixed.distances.push_back(range_of(spec.b, bytes));
  }

  bool store_in_16_bits(const Partial16& state) override {
    if (spec.add || spec.out != device::Element::F32 || spec.in != state.element ||
        spec.panels.size() != 1) {
      return false;
    }
    const auto there = state.find(spec.panels.front().c);
    if (!there) return false;
    spec.panels.front().c = *there;
    spec.out = spec.in;
    return true;
  }

  bool counts_rows() const override { return has_used_rows(spec); }
  bool is_like(const KernelLaunch& other) const override {
    const auto* const product = find_spec<GemmSpec>(other);
    return product != nullptr && are_alike(spec, *product);
  }
  Touched touched() const override {
    const GemmPanelSpec& panel = spec.panels.front();
    const GemmKChunkSpec& k_chunk = panel.k_chunks.front();
    const bool rows_of_n = spec.layout == device::GemmLayout::NMajor;
    const std::int64_t b_rows = rows_of_n ? spec.k : spec.n;
    const std::int64_t b_columns = rows_of_n ? spec.n : spec.k;
    Touched touched{
        .written = {rows_at(panel.c, panel.rows, spec.n, panel.c_stride, spec.out)},
        .read = {spec.m_major ? rows_at(k_chunk.a, spec.k, panel.rows, k_chunk.stride, spec.in)
                              : rows_at(k_chunk.a, panel.rows, spec.k, k_chunk.stride, spec.in),
                 rows_at(spec.b, b_rows, b_columns, spec.b_stride, spec.in)}};
    touched.add(panel.used);
    return touched;
  }
  std::optional<LaunchSpec> join(std::span<const LaunchSpec> run,
                                 int /*multiprocessors*/) const override {
    return as_groups(run);
  }
};

// cuBLASLt: it cannot wait inside its kernel or raise signals, and it is alone in its launch.
class CublasLtLaunch final : public GemmLaunch {
 public:
  using GemmLaunch::GemmLaunch;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<CublasLtLaunch>(*this);
  }
  std::string_view name() const override { return kCublasLtGemm; }
  Checked<Ok> check(int /*multiprocessors*/) const override { return Ok{}; }
  std::string choose(int /*multiprocessors*/) const override { return ""; }
  bool has_variant(std::string_view /*variant*/) const override { return true; }

  device::Bounds* bounds() override { return nullptr; }

  bool can_be_joined(bool takes_copies) const override {
    const GemmPanelSpec& panel = spec.panels.front();
    return GemmLaunch::can_be_joined(takes_copies) && !takes_copies && spec.panels.size() == 1 &&
           panel.k_chunks.size() == 1 && panel.addends.empty() &&
           panel.k_chunks.front().ready.flag == nullptr && spec.fused_stores.empty() &&
           spec.copies.empty() && spec.maps.empty();
  }
  void add_fixed(FixedWords& fixed) const override {
    fixed.words.push_back(spec.b);
    add_panels(spec, fixed.words);
  }
};

}  // namespace

std::unique_ptr<KernelLaunch> make_launch(GemmSpec spec) {
  if (spec.engine == LeafEngine::Library) return std::make_unique<CublasLtLaunch>(std::move(spec));
  return std::make_unique<GemmLaunch>(std::move(spec));
}

}  // namespace harpe::cuda
