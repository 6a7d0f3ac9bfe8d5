#include "exec/cuda/target/spec_offers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "exec/cuda/kernels/batch.h"
#include "exec/cuda/kernels/kernel_binding.h"
#include "exec/cuda/kernels/nccl/nccl_launch.h"
#include "exec/cuda/target/bind_kernel.h"
#include "plan/refs.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using launch::Kernel;
using launch::Launch;

// Stands for any signal; its address does not matter.
constexpr std::uintptr_t kAnySignal = std::uintptr_t{1} << 61;
SignalCells made_up_cells() {
  const auto cell = [] { return reinterpret_cast<std::uint32_t*>(kAnySignal); };
  return {.awaited = [=](launch::SignalId) { return device::FlagWait{cell(), 1, 0}; },
          .raised = [=](const launch::Raise&) { return device::RaiseTarget{cell(), nullptr, 1}; },
          .is_in_data = [](launch::SignalId) { return false; }};
}

}  // namespace

SpecOffers::SpecOffers(const Plan& plan, const Blocks& blocks, const launch::Exchanges& exchanges,
                       const std::vector<AllocId>& partials16, int multiprocessors)
    : exchanges_(exchanges),
      memory_(plan, blocks),
      narrow_(NarrowStates::of(plan, memory_.bases(), partials16)),
      source_(memory_.source(narrow_, no_choice_, multiprocessors)),
      likeness_(plan, blocks, source_.layouts, partials16),
      alone_(plan.tasks.size()) {}

Checked<std::span<const Kernel>> SpecOffers::kernels_of(TaskId id) {
  const Task& task = source_.plan.tasks[id.index()];
  const auto sums = exchanges_.by_library.find(task.group);
  if (sums != exchanges_.by_library.end()) {
    HP_REQUIRE_OK(add_exchange(id, sums->second.sums));
    return std::span<const Kernel>(alone_[id.index()].kernels);
  }
  TaskAlone& alone = alone_[id.index()];
  if (!alone.kernels.empty()) return std::span<const Kernel>(alone.kernels);
  // Collectives become moves, which have no places.
  if (task.kind != TaskKind::Collective) alone.refs = lay_refs(source_.layouts, task);
  const std::optional<TaskLikeness::Key> key = likeness_.key_of(id, alone.refs);
  const auto like = key ? known_.find(*key) : known_.end();
  if (like != known_.end()) {
    alone.like = like->second;
    const TaskAlone& prepared = alone_[like->second.index()];
    alone.kernels = kernels_like(alone.refs, prepared, prepared.kernels);
    alone.leads = likeness_.leads_of(task, alone.kernels, prepared.kernels);
    return std::span<const Kernel>(alone.kernels);
  }
  HP_REQUIRE_OK(prepare(id));
  if (key) known_.emplace(*key, id);
  return std::span<const Kernel>(alone.kernels);
}

Checked<Ok> SpecOffers::prepare(TaskId id) {
  HP_TRY(TaskSpecs specs, specs_of(source_, id, kNowhere));
  TaskAlone& alone = alone_[id.index()];
  alone.specs = std::move(specs.launches);
  alone.kernels = describe_kernels(source_, alone.refs, alone.specs);
  return Ok{};
}

// NCCL's part, with the steps of a sum around it. It has no places, so ranks whose steps are alike
// run the same.
Checked<Ok> SpecOffers::add_exchange(TaskId id, const std::map<RankId, launch::SumSteps>& sums) {
  TaskAlone& alone = alone_[id.index()];
  if (!alone.kernels.empty()) return Ok{};
  const auto own = sums.find(rank_of(source_.plan, id));
  const launch::SumSteps* const steps = own == sums.end() ? nullptr : &own->second;
  const std::optional<TaskLikeness::Key> key = key_of(steps);
  const auto like = key ? known_exchanges_.find(*key) : known_exchanges_.end();
  if (like != known_exchanges_.end()) {
    alone.like = like->second;
    alone.kernels = alone_[like->second.index()].kernels;
    return Ok{};
  }
  HP_REQUIRE_OK(prepare_exchange(id, steps));
  if (key) known_exchanges_.emplace(*key, id);
  return Ok{};
}

// None if more than the steps' keys matters.
std::optional<TaskLikeness::Key> SpecOffers::key_of(const launch::SumSteps* steps) {
  TaskLikeness::Key all;
  const auto add = [&](const Task& step) {
    const auto key = likeness_.key_of(step, lay_refs(source_.layouts, step));
    if (!key) return false;
    all.push_back(static_cast<std::int32_t>(key->size()));
    all.insert(all.end(), key->begin(), key->end());
    return true;
  };
  if (steps == nullptr) return all;
  if (!std::ranges::all_of(steps->rounds, add) || !add(steps->fold)) return std::nullopt;
  return all;
}

Checked<Ok> SpecOffers::prepare_exchange(TaskId id, const launch::SumSteps* steps) {
  const RankId rank = rank_of(source_.plan, id);
  TaskAlone& alone = alone_[id.index()];
  const auto add = [&](const Task& step) -> Checked<Ok> {
    HP_TRY(TaskSpecs own, specs_of(source_, step, rank, kNowhere));
    std::ranges::move(own.launches, std::back_inserter(alone.specs));
    return Ok{};
  };
  if (steps != nullptr) {
    for (const Task& round : steps->rounds) HP_REQUIRE_OK(add(round));
  }
  alone.specs.emplace_back(library::NcclCall{});
  if (steps != nullptr) HP_REQUIRE_OK(add(steps->fold));
  alone.kernels = describe_kernels(source_, {}, alone.specs);
  return Ok{};
}

Checked<std::vector<Kernel>> SpecOffers::landing_of(TaskId put) {
  HP_TRY(const TaskSpecs landing, landing_specs_of(source_, put));
  return describe_kernels(source_, {}, landing.launches);
}

bool SpecOffers::counts_rows(TaskId id) {
  return std::ranges::all_of(prepared_of(alone_, id).specs,
                             [](const LaunchSpec& spec) { return spec->counts_rows(); });
}

// Only ragged tasks are batched with others, and none of them is like another.
std::vector<Kernel> SpecOffers::batched(const std::vector<TaskId>& tasks) {
  if (tasks.size() == 1) return batched_alone(tasks.front());
  LaunchSpecs specs;
  std::vector<LaidRef> refs;
  for (const TaskId id : tasks) {
    const TaskAlone& alone = alone_[id.index()];
    HP_CHECK(!alone.like.valid(), "a task that is like another is batched by itself");
    specs.insert(specs.end(), alone.specs.begin(), alone.specs.end());
    refs.insert(refs.end(), alone.refs.begin(), alone.refs.end());
  }
  return describe_kernels(source_, refs, cuda::batched(std::move(specs), source_.multiprocessors));
}

// One task's launches, joined once for all tasks that are alike.
std::vector<Kernel> SpecOffers::batched_alone(TaskId task) {
  const TaskAlone& own = alone_[task.index()];
  const TaskId prepared = own.like.valid() ? own.like : task;
  const TaskAlone& alone = alone_[prepared.index()];
  auto known = batched_.find(prepared);
  if (known == batched_.end()) {
    std::vector<Kernel> kernels = alone.kernels;
    if (can_be_batched(alone.specs)) {
      kernels = describe_kernels(source_, alone.refs,
                                 cuda::batched(alone.specs, source_.multiprocessors));
    }
    known = batched_.emplace(prepared, std::move(kernels)).first;
  }
  return own.like.valid() ? kernels_like(own.refs, alone, known->second) : known->second;
}

std::optional<SpecOffers::KernelAlone> SpecOffers::find_alone(const Launch& launch,
                                                              const Kernel& kernel) {
  if (launch.does.size() > 1 || launch.lands) return std::nullopt;
  const TaskId task = launch.does.front();
  const TaskAlone& own = alone_[task.index()];
  const auto same = find_around(own.kernels, next_, [&](const Kernel& each) {
    return each.arrivals == kernel.arrivals && each.panels.size() == kernel.panels.size() &&
           each.panels.front().stores == kernel.panels.front().stores;
  });
  if (!same) return std::nullopt;
  next_ = *same + 1;
  KernelAlone found{.task = own.like.valid() ? own.like : task,
                    .index = *same,
                    .reserved_sms = launch.reserved_sms};
  Kernel stored = own.kernels[*same];
  for (std::size_t i = 0; i < kernel.panels.size(); ++i) {
    found.stored.push_back(stored.panels[i].dtype = kernel.panels[i].dtype);
  }
  if (stored != kernel) return std::nullopt;
  return found;
}

// Variants are chosen once for tasks that are alike, both for own kernels and for kernels made from
// them.
std::optional<std::string> SpecOffers::choose(const Launch& launch, const Kernel& kernel) {
  if (kernel.panels.empty()) return std::nullopt;
  const std::optional<KernelAlone> alone = find_alone(launch, kernel);
  if (!alone) return choose_made_up(launch, kernel);
  const auto known = chosen_.find(*alone);
  if (known != chosen_.end()) return known->second;
  return chosen_.emplace(*alone, bind_and_choose(launch, kernel)).first->second;
}

bool SpecOffers::moves_by_threads(const Kernel& kernel, DType dtype) {
  return cuda::moves_by_threads(kernel, dtype);
}

bool SpecOffers::bounds_epochs(const Kernel& kernel) { return cuda::bounds_epochs(kernel); }

std::optional<std::string> SpecOffers::choose_made_up(const Launch& launch, const Kernel& kernel) {
  const bool waits = std::ranges::any_of(
      kernel.arrivals, [](const launch::Arrival& arrival) { return arrival.when.has_value(); });
  if (launch.does.size() > 1 || launch.lands || waits) return bind_and_choose(launch, kernel);
  const TaskId task = launch.does.front();
  const TaskAlone& own = alone_[task.index()];
  const TaskId prepared = own.like.valid() ? own.like : task;
  std::vector<Kernel> moved = {kernel};
  if (!move_places(moved, own.refs, alone_[prepared.index()].refs)) {
    return bind_and_choose(launch, kernel);
  }
  std::vector<MadeUp>& known = made_up_[prepared];
  const auto same = std::ranges::find_if(known, [&](const MadeUp& one) {
    return one.reserved_sms == launch.reserved_sms && one.kernel == moved.front();
  });
  if (same != known.end()) return same->variant;
  known.push_back({.kernel = std::move(moved.front()),
                   .reserved_sms = launch.reserved_sms,
                   .variant = bind_and_choose(launch, kernel)});
  return known.back().variant;
}

std::optional<std::string> SpecOffers::bind_and_choose(const Launch& launch, const Kernel& kernel) {
  const BindSource source{.memory = source_, .alone = alone_, .cells = made_up_cells()};
  const int multiprocessors = source_.multiprocessors - launch.reserved_sms;
  const Checked<LaunchSpec> spec = bind_kernel(source, launch, kernel);
  const bool takes_copies = std::ranges::any_of(launch.does, [&](TaskId id) {
    return source_.plan.tasks[id.index()].kind == TaskKind::Copy;
  });
  const bool can =
      spec.ok() && (*spec)->can_be_joined(takes_copies) && (*spec)->check(multiprocessors).ok();
  if (!can) return std::nullopt;
  return (*spec)->choose(multiprocessors);
}

}  // namespace harpe::cuda
