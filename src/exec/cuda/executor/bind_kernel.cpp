#include "exec/cuda/executor/bind_kernel.h"

#include <algorithm>

#include "exec/cuda/actions/join_places.h"
#include "exec/cuda/actions/loop_nests.h"
#include "exec/cuda/executor/bind_parts.h"
#include "exec/cuda/executor/describe_kernel.h"
#include "exec/cuda/gemm_choice_text.h"

namespace harpe::cuda {
namespace {

Diag cannot_bind(const launch::Launch& launch, const std::string& kernel,
                 const std::string& reason) {
  return make_diag(DiagCode::G092,
                   {{"kernel", kernel}, {"task", launch.does.front().value}, {"reason", reason}});
}

class LaunchBinder {
 public:
  LaunchBinder(const BindSource& source, const launch::Launch& launch)
      : source_(source), launch_(launch) {
    source_.places.enter(launch.does);
  }

  Checked<std::vector<LaunchSpec>> bind() {
    if (launch_.is_skipped) return std::vector<LaunchSpec>();
    HP_REQUIRE_OK(find_alone());
    std::vector<LaunchSpec> specs;
    for (const launch::Kernel& kernel : launch_.kernels) {
      HP_TRY(specs.emplace_back(), bind(kernel));
      const std::string name = name_kernel(specs.back());
      if (name != kernel.name)
        return cannot_bind(launch_, kernel.name, "they make up `" + name + "`");
    }
    const auto left = std::ranges::find(alone_, false, &LaunchAlone::is_bound);
    if (left == alone_.end()) return specs;
    return cannot_bind(launch_, name_kernel(*left->spec), "the launch has no such kernel");
  }

 private:
  Checked<Ok> find_alone() {
    if (launch_.lands) {
      HP_TRY(landing_, landing_specs_of(source_.memory, launch_.does.front()));
      add_alone(landing_.launches);
      return Ok{};
    }
    for (const TaskId task : launch_.does) {
      if (is_taken_over(source_.memory.plan, launch_, task)) continue;
      add_alone(source_.alone[task.index()].launches);
    }
    return Ok{};
  }

  void add_alone(const std::vector<LaunchSpec>& specs) {
    for (const LaunchSpec& spec : specs) {
      LaunchAlone alone{.spec = &spec};
      if (const auto* const gemm = std::get_if<GemmSpec>(&spec)) {
        const GemmPanelSpec& panel = gemm->panels.front();
        const GemmPieceSpec& piece = panel.pieces.front();
        alone.places = {source_.places.find(array_a(*gemm, panel, piece)),
                        source_.places.find(array_b(*gemm, panel, piece)),
                        source_.places.find(array_c(*gemm, panel))};
      } else if (const auto* const heads = std::get_if<AttentionSpec>(&spec)) {
        const AttentionPanelSpec& panel = heads->panels.front();
        const AttentionChunkSpec& chunk = heads->chunks.front();
        alone.places = {source_.places.find(array_queries(*heads, panel)),
                        source_.places.find(array_keys(*heads, chunk)),
                        source_.places.find(array_values(*heads, chunk)),
                        source_.places.find(array_output(*heads, panel))};
      }
      alone_.push_back(std::move(alone));
    }
  }

  Checked<LaunchSpec> bind(const launch::Kernel& kernel) {
    const KernelBinding binding{
        .source = source_, .launch = launch_, .kernel = kernel, .alone = alone_};
    const auto next = std::ranges::find(alone_, false, &LaunchAlone::is_bound);
    if (next == alone_.end()) return binding.refuse("they are done without it");
    if (kernel.panels.empty()) return bind_plain(binding, next);
    if (std::holds_alternative<AttentionSpec>(*next->spec)) {
      HP_TRY(AttentionSpec spec, bind_attention(binding));
      return LaunchSpec{std::move(spec)};
    }
    HP_TRY(GemmSpec spec, bind_gemm(binding));
    return LaunchSpec{std::move(spec)};
  }

  // A kernel without panels: what the next tasks do alone, side by side in one launch.
  Checked<LaunchSpec> bind_plain(const KernelBinding& binding,
                                 std::vector<LaunchAlone>::iterator next) const {
    const auto count = static_cast<std::ptrdiff_t>(binding.kernel.joins);
    if (alone_.end() - next < count) return binding.refuse("they have fewer kernels than it joins");
    std::vector<LaunchSpec> run;
    for (auto each = next; each != next + count; ++each) {
      each->is_bound = true;
      run.push_back(*each->spec);
    }
    if (run.size() == 1) return std::move(run.front());
    std::optional<LaunchSpec> joined = join_places(run, source_.memory.multiprocessors);
    if (!joined) return binding.refuse("they differ in more than where their operands lie");
    return *std::move(joined);
  }

  const BindSource& source_;
  const launch::Launch& launch_;
  TaskSpecs landing_;
  std::vector<LaunchAlone> alone_;
};

}  // namespace

Diag KernelBinding::refuse(const std::string& reason) const {
  return cannot_bind(launch, kernel.name, reason);
}

Checked<StridedArray> KernelBinding::place(const StridedArray& array, const char* what,
                                           const launch::Place* to) const {
  if (to == nullptr) return array;
  std::optional<StridedArray> placed = source.places.move(array, *to);
  const bool is_dense = placed && placed->extents.back().stride == array.extents.back().stride;
  if (is_dense) return *std::move(placed);
  return refuse(std::string(what) + " cannot lie in `" +
                source.memory.plan.allocs[to->alloc.index()].name + "` as they do there");
}

device::FlagWait KernelBinding::await(std::optional<launch::SignalId> signal) const {
  return signal ? source.cells.awaited(*signal) : device::FlagWait{};
}

device::WaitContext KernelBinding::wait_context() const {
  device::WaitContext context = source.cells.context;
  context.task = static_cast<std::uint32_t>(launch.does.front().value);
  return context;
}

Checked<std::vector<device::CopyJob>> KernelBinding::copies() const {
  std::vector<const CopyLaunch*> launches;
  for (const TaskId task : launch.does) {
    if (!is_taken_over(source.memory.plan, launch, task)) continue;
    for (const LaunchSpec& spec : source.alone[task.index()].launches) {
      if (const auto* const copy = std::get_if<CopyLaunch>(&spec)) launches.push_back(copy);
    }
  }
  std::vector<device::CopyJob> jobs;
  for (const launch::FusedCopy& fused : kernel.fused_copies) {
    const auto copy = std::ranges::find_if(launches, [&](const CopyLaunch* each) {
      return source.places.find(array_bytes(each->from, each->bytes)) == fused.from &&
             source.places.find(array_bytes(each->to, each->bytes)) == fused.to;
    });
    if (copy == launches.end()) return refuse("none of them makes a copy that it makes");
    std::uint32_t* done = nullptr;
    if (fused.raises) {
      const auto target = source.cells.raised({.signal = *fused.raises, .adds = 1});
      if (target) done = target->word;
    }
    jobs.push_back({.from = reinterpret_cast<const void*>((*copy)->from),
                    .to = reinterpret_cast<void*>((*copy)->to),
                    .bytes = (*copy)->bytes,
                    .ready = {},
                    .done = done});
  }
  return jobs;
}

bool are_same_elements(const std::optional<launch::Place>& one, const launch::Place* other) {
  if (!one || other == nullptr) return !one && other == nullptr;
  return one->span == other->span;
}

const launch::Place* place_at(const std::vector<launch::Place>& places, std::size_t index) {
  return index < places.size() ? &places[index] : nullptr;
}

Checked<std::vector<LaunchSpec>> bind(const BindSource& source, const launch::Launch& launch) {
  return LaunchBinder(source, launch).bind();
}

Checked<std::optional<GemmChoice>> bind_variant(const launch::Launch& launch,
                                                const launch::Kernel& kernel,
                                                const LaunchSpec& spec) {
  const auto* const gemm = std::get_if<GemmSpec>(&spec);
  if (gemm == nullptr || gemm->engine == LeafEngine::Library) return std::optional<GemmChoice>();
  std::optional<GemmChoice> choice = find_gemm_choice(*gemm, kernel.variant);
  if (choice) return choice;
  return cannot_bind(launch, kernel.name, "it has no variant \"" + kernel.variant + "\" for them");
}

bool is_taken_over(const Plan& plan, const launch::Launch& launch, TaskId task) {
  return plan.tasks[task.index()].kind != plan.tasks[launch.does.front().index()].kind;
}

device::WaitContext* inner_wait(LaunchSpec& spec) {
  const auto is_awaited = [](const auto& operand) { return operand.ready.flag != nullptr; };
  if (auto* const gemm = std::get_if<GemmSpec>(&spec)) {
    const bool waits = std::ranges::any_of(gemm->panels, [&](const GemmPanelSpec& panel) {
      return std::ranges::any_of(panel.pieces, is_awaited) ||
             std::ranges::any_of(panel.addends, is_awaited);
    });
    return waits ? &gemm->wait : nullptr;
  }
  auto* const attention = std::get_if<AttentionSpec>(&spec);
  const bool waits = attention != nullptr && std::ranges::any_of(attention->chunks, is_awaited);
  return waits ? &attention->wait : nullptr;
}

}  // namespace harpe::cuda
