#include "exec/cuda/kernels/attention/bind_results.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/kernels/attention/attention_arrays.h"
#include "exec/cuda/kernels/attention/bind_operands.h"
#include "exec/cuda/kernels/attention/decode.h"

namespace harpe::cuda {
namespace {

// The parts of a state: the task alone stores them at places 0 and 1.
enum Part : std::size_t { kOutput, kLse };

class ResultBinder {
 public:
  explicit ResultBinder(const KernelBinding& binding)
      : binding_(binding), kernel_(binding.kernel()) {}

  Checked<AttentionSpec> bind() {
    HP_REQUIRE_OK(find_alone());
    spec_ = alone_->spec->get<AttentionSpec>();
    const auto adds = std::ranges::find_if(kernel_.panels, has_addends);
    spec_.to_state = adds == kernel_.panels.end() || adds->dtype == DType::F32;
    HP_REQUIRE_OK(place_operands());
    spec_.panels.front().output = {};
    spec_.panels.front().lse = {};
    for (const launch::Panel& panel : kernel_.panels) HP_REQUIRE_OK(add_result(panel));
    HP_REQUIRE_OK(check_heads());
    for (const launch::Raise& raise : kernel_.fused_stores) {
      const std::optional<device::RaiseTarget> target = binding_.raised(raise);
      stores_.push_back(target ? static_cast<int>(spec_.fused_stores.size()) : -1);
      if (target) spec_.fused_stores.push_back(*target);
    }
    for (AttentionResultSpec& result : spec_.results) {
      if (result.fused_store >= 0) {
        result.fused_store = stores_[static_cast<std::size_t>(result.fused_store)];
      }
    }
    spec_.wait = binding_.wait_context();
    return std::move(spec_);
  }

 private:
  static bool has_addends(const launch::Panel& panel) { return !panel.addends.empty(); }

  // Finds the task of few queries whose results contain everything that the panels store.
  Checked<Ok> find_alone() {
    for (LaunchAlone& alone : binding_.alone()) {
      const auto* const spec = alone.spec->find<AttentionSpec>();
      if (alone.is_bound || spec == nullptr || spec->shares == 0) continue;
      const launch::Place& all = alone.panel().stores.front();
      const auto is_held = [&](const launch::Panel& panel) {
        return launch::contains(all.span, panel.stores.front().span);
      };
      const bool meets = kernel_.arrivals.size() == 1 && !kernel_.arrivals.front().when &&
                         are_elements(alone.arrival().reads, kernel_.arrivals.front().reads);
      if (!meets || !std::ranges::all_of(kernel_.panels, is_held)) continue;
      alone.is_bound = true;
      alone_ = &alone;
      return Ok{};
    }
    return binding_.refuse("no attention of few queries is among them that makes its panels");
  }

  Checked<Ok> place_operands() {
    HP_TRY(spec_.chunks.front(), place_chunk(binding_, *alone_, kernel_.arrivals.front()));
    spec_.keys_are_fixed = are_keys_fixed(binding_);
    const std::vector<launch::Place>& from = alone_->panel().reads;
    std::vector<launch::Place> to = kernel_.panels.front().reads;
    if (to.size() != from.size()) return binding_.refuse("its panels read other operands");
    to.front().span = from.front().span;
    for (const launch::Panel& panel : kernel_.panels) {
      const bool is_of_all =
          panel.reads.front().alloc == to.front().alloc &&
          launch::contains(from.front().span, panel.reads.front().span) &&
          std::ranges::equal(panel.reads.begin() + 1, panel.reads.end(), to.begin() + 1, to.end());
      if (!is_of_all) return binding_.refuse("its panels read other queries or tables");
    }
    AttentionPanelSpec& panel = spec_.panels.front();
    HP_TRY(const StridedArray queries,
           binding_.place(*alone_, {array_queries(spec_, panel), "queries", 0}, from, to));
    panel.queries = tensor_at(queries);
    return place_tables(binding_, *alone_, to, spec_);
  }

  // Finds the place of a part of the task's state in `to`, in f32 or rounded.
  Checked<HeadTensor> place(Part part, std::int64_t heads, const std::vector<launch::Place>& to,
                            bool is_state = true) const {
    const std::vector<launch::Place>& whole = alone_->panel().stores;
    if (to.size() != whole.size()) return refuse_parts();
    std::vector<launch::Place> from = whole;
    for (std::size_t i = 0; i < from.size(); ++i) from[i].span = to[i].span;
    const AttentionSpec& alone = alone_->spec->get<AttentionSpec>();
    AttentionSpec few = alone;
    few.heads = heads;
    few.to_state = is_state;
    const AttentionPanelSpec& panel = alone.panels.front();
    const StridedArray array = part == kOutput ? array_output(few, panel) : array_lse(few, panel);
    HP_TRY(
        const StridedArray placed,
        binding_.place(*alone_, {array, part == kOutput ? "the output" : "lse", part}, from, to));
    return tensor_at(placed);
  }

  [[nodiscard]] Diag refuse_parts() const {
    return binding_.refuse("its panels store other parts of a state");
  }

  Checked<Ok> add_result(const launch::Panel& panel) {
    const launch::Place& whole = alone_->panel().stores.front();
    const std::int64_t all = launch::count_elements(whole.span);
    const std::int64_t own = launch::count_elements(panel.stores.front().span);
    AttentionResultSpec& result = spec_.results.emplace_back();
    const std::int64_t heads = spec_.heads * own / all;
    if (heads * all != spec_.heads * own) return refuse_parts();
    HP_TRY(result.first_head, find_first_head(heads, panel));
    const bool is_state = panel.dtype == DType::F32;
    if (panel.addends.empty() && !is_state) return refuse_parts();
    HP_TRY(result.output, place(kOutput, heads, panel.stores, is_state));
    HP_TRY(result.lse, place(kLse, heads, panel.stores));
    result.fused_store = panel.fused_store.value_or(-1);
    for (const launch::Addend& addend : panel.addends) {
      AttentionAddendSpec& added = result.addends.emplace_back();
      HP_TRY(added.output, place(kOutput, heads, addend.reads));
      HP_TRY(added.lse, place(kLse, heads, addend.reads));
      added.ready = binding_.await(addend.when);
    }
    return Ok{};
  }

  Checked<std::int64_t> find_first_head(std::int64_t heads, const launch::Panel& panel) const {
    if (heads == spec_.heads) return 0;  // a single head would have no stride
    std::vector<launch::Place> from = alone_->panel().stores;
    HP_TRY(const HeadTensor all, place(kOutput, spec_.heads, from));
    for (std::size_t i = 0; i < from.size() && i < panel.stores.size(); ++i) {
      from[i].span = panel.stores[i].span;
    }
    HP_TRY(const HeadTensor part, place(kOutput, heads, from));
    constexpr std::int64_t kFloat = 4;
    const auto elements = static_cast<std::int64_t>(part.address - all.address) / kFloat;
    return elements / all.strides.head;
  }

  // The kernel finds a head's result by dividing, so results have equally many heads, in order.
  Checked<Ok> check_heads() {
    std::ranges::sort(spec_.results, {}, &AttentionResultSpec::first_head);
    const auto count = static_cast<std::int64_t>(spec_.results.size());
    const std::int64_t heads = spec_.heads / count;
    for (std::int64_t i = 0; i < count; ++i) {
      const bool is_there = spec_.results[static_cast<std::size_t>(i)].first_head == i * heads;
      if (!is_there || heads * count != spec_.heads) {
        return binding_.refuse("its panels are not all heads, equally many in each");
      }
    }
    return Ok{};
  }

  const KernelBinding& binding_;
  const launch::Kernel& kernel_;
  LaunchAlone* alone_ = nullptr;
  AttentionSpec spec_;
  std::vector<int> stores_;  // index in the spec of each fused store; -1: a test drops its signal
};

}  // namespace

bool has_results(const launch::Kernel& kernel) {
  const auto has_addends = [](const launch::Panel& panel) { return !panel.addends.empty(); };
  return !kernel.fused_stores.empty() || std::ranges::any_of(kernel.panels, has_addends);
}

Checked<AttentionSpec> bind_results(const KernelBinding& binding) {
  return ResultBinder(binding).bind();
}

}  // namespace harpe::cuda
