#include "exec/cuda/executor/bind_kernel.h"

#include <algorithm>

#include "exec/cuda/executor/bind_parts.h"
#include "exec/cuda/kernels/gemm/gemm_choice_text.h"
#include "exec/cuda/kernels/plain/join_places.h"

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
      : source_(source), launch_(launch), places_(source.memory, launch.rank) {
    for (const TaskId task : launch.does) places_.add(source.alone[task.index()].refs);
  }

  Checked<std::vector<LaunchSpec>> bind_all() {
    HP_REQUIRE_OK(find_alone());
    std::vector<LaunchSpec> specs;
    for (const launch::Kernel& kernel : launch_.kernels) {
      HP_TRY(specs.emplace_back(), bind(kernel));
    }
    const auto left = std::ranges::find(alone_, false, &LaunchAlone::is_bound);
    if (left == alone_.end()) return specs;
    return cannot_bind(launch_, name_kernel(*left->spec), "the launch has no such kernel");
  }

  Checked<LaunchSpec> bind_one(const launch::Kernel& kernel) {
    HP_REQUIRE_OK(find_alone());
    return bind(kernel);
  }

 private:
  Checked<Ok> find_alone() {
    if (launch_.lands) {
      HP_TRY(TaskSpecs landing, landing_specs_of(source_.memory, launch_.does.front()));
      landing_.specs = std::move(landing.launches);
      landing_.kernels = describe_kernels(source_.memory, {}, landing_.specs);
      add_alone(landing_, landing_);
      return Ok{};
    }
    for (const TaskId task : launch_.does) {
      if (is_taken_over(source_.memory.plan, launch_, task)) continue;
      add_alone(source_.alone[task.index()], prepared_of(source_.alone, task));
    }
    return Ok{};
  }

  void add_alone(const TaskAlone& own, const TaskAlone& prepared) {
    for (std::size_t i = 0; i < prepared.specs.size(); ++i) {
      alone_.push_back({.spec = &prepared.specs[i],
                        .kernel = &own.kernels[i],
                        .refs = &own.refs,
                        .lead = own.leads.empty() ? 0 : own.leads[i]});
    }
  }

  Checked<LaunchSpec> bind(const launch::Kernel& kernel) {
    const KernelBinding binding{
        .source = source_, .launch = launch_, .kernel = kernel, .places = places_, .alone = alone_};
    HP_TRY(LaunchSpec spec, kernel.panels.empty() ? bind_plain(binding) : bind_panels(binding));
    const std::string name = name_kernel(spec);
    if (name != kernel.name) return binding.refuse("they make up `" + name + "`");
    return spec;
  }

  Checked<LaunchSpec> bind_panels(const KernelBinding& binding) {
    const auto next = std::ranges::find_if(alone_, [](const LaunchAlone& alone) {
      return !alone.is_bound && !alone.kernel->panels.empty();
    });
    if (next == alone_.end()) return binding.refuse("they are done without it");
    if (std::holds_alternative<AttentionSpec>(*next->spec)) {
      HP_TRY(AttentionSpec spec, bind_attention(binding));
      return LaunchSpec{std::move(spec)};
    }
    HP_TRY(GemmSpec spec, bind_gemm(binding));
    return LaunchSpec{std::move(spec)};
  }

  // What the next tasks do alone, side by side in one launch.
  Checked<LaunchSpec> bind_plain(const KernelBinding& binding) {
    const auto next = std::ranges::find(alone_, false, &LaunchAlone::is_bound);
    if (next == alone_.end()) return binding.refuse("they are done without it");
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
  KernelPlaces places_;
  TaskAlone landing_;
  std::vector<LaunchAlone> alone_;
};

}  // namespace

Diag KernelBinding::refuse(const std::string& reason) const {
  return cannot_bind(launch, kernel.name, reason);
}

Checked<std::vector<LaunchSpec>> bind(const BindSource& source, const launch::Launch& launch) {
  if (launch.is_skipped) return std::vector<LaunchSpec>();
  return LaunchBinder(source, launch).bind_all();
}

Checked<LaunchSpec> bind_kernel(const BindSource& source, const launch::Launch& launch,
                                const launch::Kernel& kernel) {
  return LaunchBinder(source, launch).bind_one(kernel);
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
