#include "exec/cuda/target/bind_kernel.h"

#include <algorithm>

#include "exec/cuda/target/bind_parts.h"

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

  Checked<LaunchSpecs> bind_all() {
    HP_REQUIRE_OK(find_alone());
    LaunchSpecs specs;
    for (const launch::Kernel& kernel : launch_.kernels) {
      HP_TRY(LaunchSpec spec, bind(kernel));
      specs.push_back(std::move(spec));
    }
    const auto left = std::ranges::find(alone_, false, &LaunchAlone::is_bound);
    if (left == alone_.end()) return specs;
    return cannot_bind(launch_, std::string((*left->spec)->name()),
                       "the launch has no such kernel");
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
    const PlacedBinding binding(source_, launch_, kernel, places_, alone_);
    HP_TRY(LaunchSpec spec, kernel.panels.empty() ? bind_plain(binding) : bind_panels(binding));
    const std::string name(spec->name());
    if (name != kernel.name) return binding.refuse("they make up `" + name + "`");
    return spec;
  }

  Checked<LaunchSpec> bind_panels(const KernelBinding& binding) {
    const auto is_left = [](const LaunchAlone& alone) {
      return !alone.is_bound && !alone.kernel->panels.empty();
    };
    auto next = std::ranges::find_if(alone_, [&](const LaunchAlone& alone) {
      return is_left(alone) && (*alone.spec)->makes(binding.kernel().name);
    });
    if (next == alone_.end()) next = std::ranges::find_if(alone_, is_left);
    if (next == alone_.end()) return binding.refuse("they are done without it");
    const bool has_maps = std::ranges::any_of(
        binding.kernel().panels, [](const launch::Panel& panel) { return !panel.maps.empty(); });
    if (has_maps && !(*next->spec)->takes_maps()) return binding.refuse("it applies no maps");
    return (*next->spec)->bind(binding);
  }

  // The next tasks' own launches, joined in one launch.
  Checked<LaunchSpec> bind_plain(const KernelBinding& binding) {
    const auto next = std::ranges::find(alone_, false, &LaunchAlone::is_bound);
    if (next == alone_.end()) return binding.refuse("they are done without it");
    const auto count = static_cast<std::ptrdiff_t>(binding.kernel().joins);
    if (alone_.end() - next < count) return binding.refuse("they have fewer kernels than it joins");
    LaunchSpecs run;
    for (auto each = next; each != next + count; ++each) {
      each->is_bound = true;
      run.push_back(*each->spec);
    }
    if (run.size() == 1) return std::move(run.front());
    const bool are_alike = std::ranges::all_of(
        run, [&](const LaunchSpec& each) { return run.front()->is_like(*each); });
    std::optional<LaunchSpec> joined;
    if (are_alike) joined = run.front()->join(run, source_.memory.multiprocessors);
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

Diag PlacedBinding::refuse(const std::string& reason) const {
  return cannot_bind(launch_, kernel_.name, reason);
}

Checked<LaunchSpecs> bind(const BindSource& source, const launch::Launch& launch) {
  if (launch.is_skipped) return LaunchSpecs();
  return LaunchBinder(source, launch).bind_all();
}

Checked<LaunchSpec> bind_kernel(const BindSource& source, const launch::Launch& launch,
                                const launch::Kernel& kernel) {
  return LaunchBinder(source, launch).bind_one(kernel);
}

Checked<Ok> check_variant(const launch::Launch& launch, const launch::Kernel& kernel,
                          const LaunchSpec& spec) {
  if (spec->has_variant(kernel.variant)) return Ok{};
  return cannot_bind(launch, kernel.name, "it has no variant \"" + kernel.variant + "\" for them");
}

bool is_taken_over(const Plan& plan, const launch::Launch& launch, TaskId task) {
  const Task& first = plan.tasks[launch.does.front().index()];
  const Task& own = plan.tasks[task.index()];
  if (own.kind != first.kind) return true;
  if (own.kind != TaskKind::Compute) return false;
  const bool is_same = own.nest == first.nest && own.stmt == first.stmt;
  const LeafContract* const leaf = find_leaf_contract(actions::statement_of(plan, own).leaf);
  return !is_same && leaf != nullptr && leaf->pointwise;
}

}  // namespace harpe::cuda
