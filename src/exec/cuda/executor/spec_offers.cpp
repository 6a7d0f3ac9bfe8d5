#include "exec/cuda/executor/spec_offers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "exec/cuda/actions/batch.h"
#include "exec/cuda/actions/merge.h"
#include "exec/cuda/device/copy_args.h"
#include "plan/refs.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using launch::Kernel;
using launch::Launch;
using launch::Place;

bool is_same_work(const Kernel& own, const Kernel& kernel) {
  return own.name == kernel.name && own.arrivals == kernel.arrivals &&
         own.panels == kernel.panels && kernel.fused_copies.empty();
}

// Of a kernel that a task is on its own.
std::vector<Place*> places_in(std::vector<Kernel>& kernels) {
  std::vector<Place*> places;
  for (Kernel& kernel : kernels) {
    for (launch::Arrival& arrival : kernel.arrivals) {
      for (Place& place : arrival.reads) places.push_back(&place);
    }
    for (launch::Panel& panel : kernel.panels) {
      for (Place& place : panel.reads) places.push_back(&place);
      for (Place& place : panel.stores) places.push_back(&place);
    }
  }
  return places;
}

// Index of the reference that names the place.
std::optional<std::size_t> find_ref(const std::vector<LaidRef>& refs, const Place& place) {
  const auto found = std::ranges::find_if(refs, [&](const LaidRef& ref) {
    return ref.alloc == place.alloc && ref.find(place.span) != nullptr;
  });
  if (found == refs.end()) return std::nullopt;
  return static_cast<std::size_t>(found - refs.begin());
}

bool is_gemm_of_one_chunk(const LaunchSpec& spec) {
  const auto* const product = std::get_if<GemmSpec>(&spec);
  return product != nullptr && !has_groups(*product) && product->panels.size() == 1 &&
         product->panels.front().pieces.size() == 1;
}

// A library's GEMM is one product that waits for nothing and raises nothing.
bool is_within_library(const GemmSpec& spec) {
  const GemmPanelSpec& panel = spec.panels.front();
  return spec.panels.size() == 1 && panel.pieces.size() == 1 && panel.addends.empty() &&
         panel.pieces.front().ready.flag == nullptr && spec.fused_stores.empty() &&
         spec.copies.empty();
}

}  // namespace

SpecOffers::SpecOffers(const Plan& plan, const Blocks& blocks, const launch::Exchanges& exchanges,
                       const std::vector<AllocId>& partials16, int multiprocessors)
    : exchanges_(exchanges),
      memory_(plan, blocks),
      narrow_(NarrowStates::of(plan, memory_.bases().arenas, partials16)),
      source_(memory_.source(narrow_, no_choice_, multiprocessors)),
      places_(source_, partials16),
      layouts_(plan, blocks),
      likeness_(plan, blocks, layouts_, partials16),
      works_(plan.tasks.size()) {}

Checked<std::vector<Kernel>> SpecOffers::kernels_of(TaskId id) {
  const Task& task = source_.plan.tasks[id.index()];
  const auto sums = exchanges_.by_library.find(task.group);
  if (sums != exchanges_.by_library.end()) {
    HP_REQUIRE_OK(prepare_exchange(id, sums->second.sums));
    return work_of(id).kernels;
  }
  Work& work = work_of(id);
  work.refs.clear();
  for (const std::vector<Ref>* const refs : {&task.writes, &task.reads}) {
    for (const Ref& ref : *refs) work.refs.push_back(layouts_.of(ref));
  }
  const std::optional<TaskLikeness::Key> key = likeness_.key_of(id, work.refs);
  const auto like = key ? known_.find(*key) : known_.end();
  if (like != known_.end() && like->second != id) {
    if (auto kernels = kernels_like(id, like->second)) {
      work.like = like->second;
      return *std::move(kernels);
    }
  }
  HP_REQUIRE_OK(prepare(id));
  if (key) known_.emplace(*key, id);
  return work.kernels;
}

Checked<Ok> SpecOffers::prepare(TaskId id) {
  HP_TRY(TaskSpecs specs, specs_of(source_, id, kNowhere));
  Work& work = work_of(id);
  const TaskId tasks[] = {id};
  work.specs = std::move(specs.launches);
  work.kernels = described(work.specs, tasks);
  return Ok{};
}

std::optional<std::vector<Kernel>> SpecOffers::kernels_like(TaskId id, TaskId like) const {
  const std::vector<LaidRef>& refs = works_[id.index()].refs;
  const Work& other = works_[like.index()];
  std::vector<Kernel> kernels = other.kernels;
  for (Place* const place : places_in(kernels)) {
    const std::optional<std::size_t> ref = find_ref(other.refs, *place);
    if (!ref) return std::nullopt;
    const std::vector<std::int64_t>& origin = refs[*ref].origin;
    const std::vector<std::int64_t>& from = other.refs[*ref].origin;
    place->alloc = refs[*ref].alloc;
    for (std::size_t axis = 0; axis < place->span.size(); ++axis) {
      place->span[axis].begin += origin[axis] - from[axis];
      place->span[axis].end += origin[axis] - from[axis];
    }
  }
  return kernels;
}

// NCCL's part, with the steps of a sum around it.
Checked<Ok> SpecOffers::prepare_exchange(TaskId id,
                                         const std::map<RankId, launch::SumSteps>& sums) {
  const RankId rank = rank_of(source_.plan, id);
  const auto steps = sums.find(rank);
  std::vector<LaunchSpec>& specs = work_of(id).specs;
  const auto add = [&](const Task& step) -> Checked<Ok> {
    HP_TRY(TaskSpecs own, specs_of(source_, step, rank, kNowhere));
    std::ranges::move(own.launches, std::back_inserter(specs));
    return Ok{};
  };
  if (steps != sums.end()) {
    for (const Task& round : steps->second.rounds) HP_REQUIRE_OK(add(round));
  }
  specs.emplace_back(library::NcclCall{});
  if (steps != sums.end()) HP_REQUIRE_OK(add(steps->second.fold));
  const TaskId tasks[] = {id};
  work_of(id).kernels = described(specs, tasks);
  return Ok{};
}

Checked<std::vector<Kernel>> SpecOffers::landing_of(TaskId put) {
  HP_TRY(const TaskSpecs landing, landing_specs_of(source_, put));
  const TaskId tasks[] = {put};
  return described(landing.launches, tasks);
}

std::vector<Kernel> SpecOffers::described(const std::vector<LaunchSpec>& specs,
                                          std::span<const TaskId> tasks) {
  static const SignalNames kNoSignals{
      .awaited = [](const device::FlagWait&) { return std::optional<launch::SignalId>(); },
      .raised = [](const device::RaiseTarget&) { return launch::Raise{}; }};
  std::vector<Kernel> kernels;
  const auto has_panels = [](const LaunchSpec& spec) {
    return std::holds_alternative<GemmSpec>(spec) || std::holds_alternative<AttentionSpec>(spec);
  };
  if (std::ranges::any_of(specs, has_panels)) places_.enter(tasks);
  for (const LaunchSpec& spec : specs) {
    kernels.push_back(describe_kernel(spec, places_, kNoSignals));
  }
  return kernels;
}

const SpecOffers::Work& SpecOffers::prepared_of(TaskId id) const {
  const Work& work = works_[id.index()];
  return work.like.valid() ? works_[work.like.index()] : work;
}

bool SpecOffers::counts_rows(TaskId id) {
  return std::ranges::all_of(prepared_of(id).specs, is_ragged);
}

std::vector<LaunchSpec> SpecOffers::own_specs(std::span<const TaskId> tasks) {
  std::vector<LaunchSpec> specs;
  for (const TaskId id : tasks) {
    Work& work = work_of(id);
    if (work.like.valid()) {
      HP_CHECK(prepare(id).ok(), "a task becomes what one like it became");
      work.like = {};
    }
    specs.insert(specs.end(), work.specs.begin(), work.specs.end());
  }
  return specs;
}

std::vector<Kernel> SpecOffers::batched(const std::vector<TaskId>& tasks) {
  Work& batch = batches_[tasks.front()];
  batch.specs = cuda::batched(own_specs(tasks), source_.multiprocessors);
  batch.kernels = described(batch.specs, tasks);
  return batch.kernels;
}

std::vector<TaskId> SpecOffers::computes_of(const Launch& launch) const {
  std::vector<TaskId> tasks;
  for (const TaskId id : launch.does) {
    if (source_.plan.tasks[id.index()].kind == TaskKind::Compute) tasks.push_back(id);
  }
  return tasks;
}

std::optional<std::string> SpecOffers::choose(const Launch& launch, const Kernel& kernel) {
  const int multiprocessors = source_.multiprocessors - launch.reserved_sms;
  if (const LaunchSpec* const own = find_own(launch, kernel)) {
    return describe_variant(*own, multiprocessors);
  }
  const std::optional<LaunchSpec> spec = propose(launch, kernel);
  if (!spec || !check(*spec, multiprocessors).ok()) return std::nullopt;
  return describe_variant(*spec, multiprocessors);
}

const LaunchSpec* SpecOffers::find_own(const Launch& launch, const Kernel& kernel) const {
  const std::vector<TaskId> tasks = computes_of(launch);
  if (tasks.size() != 1) return nullptr;
  const TaskId id = tasks.front();
  const Work& work = works_[id.index()];
  const auto like = work.like.valid() ? kernels_like(id, work.like) : work.kernels;
  if (!like) return nullptr;
  const auto found =
      std::ranges::find_if(*like, [&](const Kernel& own) { return is_same_work(own, kernel); });
  if (found == like->end()) return nullptr;
  return &prepared_of(id).specs[static_cast<std::size_t>(found - like->begin())];
}

LocatedPlaces SpecOffers::places_of(const Launch& launch) {
  std::vector<const std::vector<LaidRef>*> refs;
  for (const TaskId id : launch.does) refs.push_back(&work_of(id).refs);
  return LocatedPlaces(source_, layouts_, refs);
}

std::optional<LaunchSpec> SpecOffers::propose(const Launch& launch, const Kernel& kernel) {
  if (kernel.panels.empty()) return std::nullopt;
  const bool is_gemm = kernel.panels.front().reads.empty();
  return is_gemm ? propose_gemm(launch, kernel) : propose_attention(launch, kernel);
}

std::optional<LaunchSpec> SpecOffers::propose_gemm(const Launch& launch, const Kernel& kernel) {
  const LocatedPlaces places = places_of(launch);
  const auto batch = batches_.find(launch.does.front());
  if (batch != batches_.end()) {
    for (std::size_t i = 0; i < batch->second.specs.size(); ++i) {
      const auto* const groups = std::get_if<GemmSpec>(&batch->second.specs[i]);
      if (groups == nullptr || batch->second.kernels[i].name != kernel.name) continue;
      auto moved = move_groups(*groups, batch->second.kernels[i], kernel, places);
      if (moved) return LaunchSpec{*std::move(moved)};
    }
    return std::nullopt;
  }
  std::vector<DescribedSpec> like;
  std::vector<const LaunchSpec*> seen;
  for (const TaskId id : computes_of(launch)) {
    const Work& work = prepared_of(id);
    for (std::size_t i = 0; i < work.specs.size(); ++i) {
      const LaunchSpec* const spec = &work.specs[i];
      if (std::ranges::find(seen, spec) != seen.end()) continue;
      seen.push_back(spec);
      if (work.kernels[i].name != kernel.name) continue;
      const auto* const product = std::get_if<GemmSpec>(spec);
      if (product != nullptr && !is_gemm_of_one_chunk(*spec)) {
        auto moved = move_groups(*product, work.kernels[i], kernel, places);
        if (moved) return LaunchSpec{*std::move(moved)};
        continue;
      }
      like.push_back({.spec = spec, .kernel = &work.kernels[i], .refs = &work.refs});
    }
  }
  std::optional<GemmSpec> bound = bind_gemm(source_, like, kernel, places);
  if (!bound || !add_copies(launch, kernel, *bound)) return std::nullopt;
  const bool is_sent = std::ranges::any_of(launch.does, [&](TaskId id) {
    return source_.plan.tasks[id.index()].kind == TaskKind::Copy;
  });
  const bool is_of_library = bound->engine == LeafEngine::Library;
  if (is_of_library && (is_sent || !is_within_library(*bound))) return std::nullopt;
  return LaunchSpec{*std::move(bound)};
}

bool SpecOffers::add_copies(const Launch& launch, const Kernel& kernel, GemmSpec& spec) {
  constexpr DeviceAddress kAlignment = 16;
  if (kernel.fused_copies.empty()) return true;
  for (const TaskId id : launch.does) {
    const Task& task = source_.plan.tasks[id.index()];
    if (task.kind != TaskKind::Copy) continue;
    const std::vector<LaunchSpec>& own = prepared_of(id).specs;
    const auto* const copy = own.size() == 1 ? std::get_if<CopyLaunch>(&own.front()) : nullptr;
    const bool fits = copy != nullptr && copy->rows == 1 && copy->bytes == task.bytes &&
                      copy->bytes % kAlignment == 0 && copy->to % kAlignment == 0 &&
                      copy->from % kAlignment == 0;
    if (!fits) return false;
    spec.copies.push_back({.from = reinterpret_cast<const void*>(copy->from),
                           .to = reinterpret_cast<void*>(copy->to),
                           .bytes = copy->bytes,
                           .ready = {},
                           .done = nullptr});
  }
  return spec.copies.size() == kernel.fused_copies.size();
}

std::optional<LaunchSpec> SpecOffers::propose_attention(const Launch& launch,
                                                        const Kernel& kernel) {
  if (!kernel.fused_copies.empty()) return std::nullopt;
  const std::vector<TaskId> tasks = computes_of(launch);
  std::vector<const Work*> works;
  if (const Work* const all = joined(tasks)) works.push_back(all);
  static_cast<void>(own_specs(tasks));
  for (const TaskId id : tasks) works.push_back(&work_of(id));
  const LocatedPlaces places = places_of(launch);
  for (const Work* const work : works) {
    for (std::size_t i = 0; i < work->specs.size(); ++i) {
      const auto* const heads = std::get_if<AttentionSpec>(&work->specs[i]);
      if (heads == nullptr || work->kernels[i].name != kernel.name) continue;
      auto moved = move_attention(source_, *heads, work->kernels[i], kernel, places);
      if (moved) return LaunchSpec{*std::move(moved)};
    }
  }
  return std::nullopt;
}

const SpecOffers::Work* SpecOffers::joined(const std::vector<TaskId>& tasks) {
  const auto [known, is_new] = joined_.try_emplace(tasks.front());
  if (is_new) {
    std::vector<ArrivingLaunch> launches;
    for (LaunchSpec& spec : own_specs(tasks)) launches.push_back({.spec = std::move(spec)});
    std::optional<LaunchSpec> one;
    if (launches.size() > 1) one = merge(launches, {});
    if (one) {
      known->second.specs = {*std::move(one)};
      known->second.kernels = described(known->second.specs, tasks);
    }
  }
  return known->second.specs.empty() ? nullptr : &known->second;
}

}  // namespace harpe::cuda
