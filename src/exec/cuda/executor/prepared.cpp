#include "exec/cuda/executor/prepared.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "exec/cuda/executor/nodes.h"
#include "exec/cuda/executor/puts.h"
#include "exec/cuda/executor/units.h"

namespace harpe::cuda {
namespace {

SignalSource signals_of(const Prepared& prepared, int rank, const CudaOptions& options) {
  SignalSource source;
  source.context = prepared.peers.page(rank).context(options.wait_limit);
  std::int32_t index = 0;
  for (const PageSignal& signal : prepared.wiring.pages[static_cast<std::size_t>(rank)]) {
    source.waits.push_back(wait_for(prepared.peers, prepared.network.get(), rank, index++, signal));
  }
  source.arena = prepared.peers.arena(rank);
  source.multiprocessors = prepared.peers.device(rank).facts().multiprocessors;
  source.is_alone = !prepared.shares_gpus;
  source.target = [&prepared, &options](TaskId task, const Raise& raise) {
    std::optional<device::RaiseTarget> target;
    if (options.drop_signal_of == task) return target;
    const SignalAddresses& page = prepared.peers.signals(static_cast<int>(raise.rank.value));
    target = target_of(page, raise.signal, raise.added);
    return target;
  };
  return source;
}

Checked<Launches> launches_of(Prepared& prepared, int rank, const UnitSpec& spec) {
  const auto at = static_cast<std::size_t>(rank);
  KernelLibrary& library = *prepared.of_rank[at];
  const Task& first = prepared.plan.tasks[spec.tasks.front().index()];
  const LaunchTools tools{
      .kernels = library,
      .multiprocessors = library.device().facts().multiprocessors - spec.spared,
      .leaves = prepared.leaves[at].get(),
      .place = {.kernel = first.leaf_kernel, .nest = first.nest, .queue = first.queue},
      .sums = prepared.queues[first.queue].sums};
  Launches launches;
  for (const LaunchSpec& launch : spec.launches) HP_REQUIRE_OK(launches.add(tools, launch));
  return launches;
}

// Gives scratch memory to the rank's tasks that need it: not to those that become part of others'
// launches, which is known once units are made.
Checked<Ok> place_scratch(Prepared& prepared, int rank, const CudaOptions& options,
                          std::vector<TaskSpecs>& specs) {
  const std::vector<TaskId>& sequence = prepared.wiring.sequence[static_cast<std::size_t>(rank)];
  const auto needs = [&](TaskId task) { return specs[task.index()].scratch > 0; };
  if (std::ranges::none_of(sequence, needs)) return Ok{};
  std::set<TaskId> joined;
  for (const UnitSpec& unit :
       make_units(prepared.plan, prepared.wiring, prepared.groups, RankId(rank), specs,
                  signals_of(prepared, rank, options))) {
    joined.insert(unit.joined.begin(), unit.joined.end());
  }
  std::map<QueueId, std::int64_t> most;
  for (const TaskId task : sequence) {
    if (joined.contains(task) || !needs(task)) continue;
    std::int64_t& bytes = most[prepared.plan.tasks[task.index()].queue];
    bytes = std::max(bytes, specs[task.index()].scratch);
  }
  const Device& device = prepared.of_rank[static_cast<std::size_t>(rank)]->device();
  for (const auto& [queue, bytes] : most) {
    HP_TRY(prepared.queues[queue].scratch, DeviceMemory::allocate(device, bytes));
  }
  for (const TaskId task : sequence) {
    if (joined.contains(task) || !needs(task)) continue;
    const QueueMemory& memory = prepared.queues.at(prepared.plan.tasks[task.index()].queue);
    HP_TRY(specs[task.index()], specs_of(prepared.source(RankId(rank)), task,
                                         reinterpret_cast<std::byte*>(memory.scratch->address())));
  }
  return Ok{};
}

// Where there is a trace all is there twice: with it, kernels note the signals they see and what
// their blocks do, and leave room for stamps.
Checked<std::vector<Unit>> units_of(Prepared& prepared, int rank,
                                    const std::vector<TaskSpecs>& specs, const CudaOptions& options,
                                    std::optional<RankTrace>& trace) {
  const auto make = [&](const SignalSource& signals) {
    return make_units(prepared.plan, prepared.wiring, prepared.groups, RankId(rank), specs,
                      signals);
  };
  SignalSource signals = signals_of(prepared, rank, options);
  std::vector<Unit> units;
  for (UnitSpec& spec : make(signals)) {
    HP_TRY(Launches work, launches_of(prepared, rank, spec));
    units.push_back({.tasks = std::move(spec.tasks),
                     .work = std::move(work),
                     .waits_inside = spec.waits_inside,
                     .raised_by = spec.raised_by,
                     .silent = std::move(spec.silent),
                     .behind = std::move(spec.behind),
                     .awaited = std::move(spec.awaited)});
  }
  if (!trace) return units;
  signals.context.sightings = trace->sightings();
  std::vector<UnitSpec> noting = make(signals);
  for (std::size_t i = 0; i < units.size(); ++i) {
    noting[i].spared = std::max(noting[i].spared, kForSignals);
    if (device::WaitContext* const wait = inner_wait(noting[i])) {
      HP_TRY(wait->notes, trace->add_notes(noting[i].tasks.front()));
    }
    HP_TRY(units[i].traced_work, launches_of(prepared, rank, noting[i]));
  }
  return units;
}

// What the rank lands.
Checked<Unit> make_landing(Prepared& prepared, int rank, TaskId put, bool is_traced) {
  HP_TRY(const TaskSpecs specs, landing_specs_of(prepared.source(RankId(rank)), put));
  const UnitSpec spec{.tasks = {put}, .launches = specs.launches};
  Unit unit{.tasks = {put}, .work = {}, .lands = true};
  HP_TRY(unit.work, launches_of(prepared, rank, spec));
  if (is_traced) {
    HP_TRY(unit.traced_work, launches_of(prepared, rank, spec));
  }
  return unit;
}

// Right behind the Entry: everything else may wait for them.
Checked<Ok> add_landings(Prepared& prepared, int rank, bool is_traced, std::vector<Unit>& units) {
  std::vector<Unit> landings;
  for (const TaskId put : prepared.wiring.landed[static_cast<std::size_t>(rank)]) {
    HP_TRY(Unit landing, make_landing(prepared, rank, put, is_traced));
    landings.push_back(std::move(landing));
  }
  const auto entry = std::ranges::find_if(units, [&](const Unit& unit) {
    return prepared.plan.tasks[unit.tasks.front().index()].kind == TaskKind::Entry;
  });
  units.insert(entry + 1, std::make_move_iterator(landings.begin()),
               std::make_move_iterator(landings.end()));
  return Ok{};
}

Checked<std::optional<RankTrace>> trace_of(const Prepared& prepared, int rank,
                                           const CudaOptions& options) {
  if (!options.trace) return std::optional<RankTrace>();
  const auto at = static_cast<std::size_t>(rank);
  HP_TRY(RankTrace trace,
         RankTrace::make(*prepared.of_rank[at],
                         prepared.wiring.sequence[at].size() + prepared.wiring.landed[at].size(),
                         prepared.wiring.pages[at].size()));
  return std::optional<RankTrace>(std::move(trace));
}

Checked<RankProgram> make_program(Prepared& prepared, int rank, const std::vector<TaskSpecs>& specs,
                                  const CudaOptions& options) {
  KernelLibrary& library = *prepared.of_rank[static_cast<std::size_t>(rank)];
  const Result<Ok, CudaError> current = library.device().make_current();
  if (!current.ok()) return to_diag(current.error());
  HP_TRY(std::optional<RankTrace> trace, trace_of(prepared, rank, options));
  HP_TRY(std::vector<Unit> units, units_of(prepared, rank, specs, options, trace));
  HP_REQUIRE_OK(add_landings(prepared, rank, trace.has_value(), units));
  for (auto& [queue, memory] : prepared.queues) {
    if (prepared.plan.queues[queue.index()].rank != RankId(rank)) continue;
    HP_REQUIRE_OK(memory.sums->allocate(library.device()));
  }
  HP_TRY(SignalKernels kernels, SignalKernels::load(library));
  return RankProgram::make(rank, {.plan = &prepared.plan,
                                  .wiring = &prepared.wiring,
                                  .peers = &prepared.peers,
                                  .network = prepared.network.get(),
                                  .kernels = kernels,
                                  .units = std::move(units),
                                  .trace = std::move(trace),
                                  .drop_signal_of = options.drop_signal_of,
                                  .stray_at = options.stray_at,
                                  .delay_seed = options.delay_seed});
}

// What NCCL is called; "" where it is not to be had, and pulls do.
Checked<std::string> connect_nccl(Prepared& prepared, std::optional<processes::ProcessGroup>& group,
                                  const CudaOptions& options) {
  const Checked<library::Nccl> nccl = library::Nccl::open(
      {.file = "", .folders = options.library_folders, .toolkits = options.cuda_folders});
  const auto missing = nccl.ok() ? std::nullopt : std::optional(nccl.error());
  Checked<Ok> is_there = Ok{};
  if (group) {
    is_there = group->agree(missing);
  } else if (missing) {
    is_there = *missing;
  }
  if (!is_there.ok()) {
    const bool may_pull = options.collectives == CollectiveEngine::Auto;
    if (!may_pull || is_there.error().code == DiagCode::N010) return is_there.error();
    prepared.collectives.refuse_all(render_message(is_there.error()));
    return std::string();
  }
  std::vector<const Device*> devices;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    devices.push_back(prepared.peers.is_own(rank) ? &prepared.peers.device(rank) : nullptr);
  }
  HP_REQUIRE_OK(prepared.communicators.connect(*nccl, prepared.collectives.teams, devices,
                                               group ? &group->exchange() : nullptr));
  return "NCCL " + nccl->version();
}

}  // namespace

Checked<Ok> connect_collectives(Prepared& prepared, std::optional<processes::ProcessGroup>& group,
                                const CudaOptions& options) {
  std::string name;
  if (!prepared.collectives.by_nccl.empty()) {
    HP_TRY(name, connect_nccl(prepared, group, options));
  }
  for (std::size_t i = 0; i < prepared.plan.tasks.size(); ++i) {
    if (prepared.collectives.by_nccl.contains(prepared.plan.tasks[i].group)) {
      end_by_itself(prepared.wiring.tasks[i]);
    }
  }
  prepared.uses = uses_of(prepared.plan, prepared.collectives, name);
  return Ok{};
}

void add_libraries(Prepared& prepared, const Nvrtc& compiler, const CudaOptions& options) {
  std::map<std::int64_t, KernelLibrary*> known;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    const Device& device = prepared.peers.device(options.launch ? options.launch->rank : rank);
    KernelLibrary*& library = known[device.facts().id.value];
    if (library == nullptr) {
      prepared.libraries.push_back(
          std::make_unique<KernelLibrary>(device, compiler, options.kernel_cache));
      library = prepared.libraries.back().get();
    }
    prepared.of_rank.push_back(library);
    prepared.leaves.push_back(std::make_unique<library::Leaves>(
        device,
        library::Search{
            .file = "", .folders = options.library_folders, .toolkits = options.cuda_folders}));
    prepared.bases.arenas.push_back(reinterpret_cast<std::byte*>(prepared.peers.arena(rank)));
  }
}

Checked<Ok> open_network(Prepared& prepared, transport::Exchange* exchange,
                         const CudaOptions& options) {
  if (puts_of(prepared.plan).empty()) return Ok{};
  HP_TRY(prepared.network, Network::open({.plan = &prepared.plan,
                                          .wiring = &prepared.wiring,
                                          .peers = &prepared.peers,
                                          .put_bytes = put_bytes_of(prepared.source(RankId(0))),
                                          .exchange = exchange,
                                          .options = options.network,
                                          .limit = options.wait_limit}));
  return Ok{};
}

Checked<std::vector<RankProgram>> make_programs(Prepared& prepared, const CudaOptions& options) {
  HP_TRY(prepared.narrow, find_narrow(prepared.source(RankId(0))));
  std::vector<TaskSpecs> specs;
  for (std::size_t i = 0; i < prepared.plan.tasks.size(); ++i) {
    const TaskId id(static_cast<std::int64_t>(i));
    // Of a rank in another process nothing is launched here.
    const RankId rank = prepared.plan.queues[prepared.plan.tasks[i].queue.index()].rank;
    if (!prepared.peers.is_own(static_cast<int>(rank.value))) {
      specs.emplace_back();
      continue;
    }
    HP_TRY(TaskSpecs own, specs_of(prepared.source(rank), id, kNowhere));
    specs.push_back(std::move(own));
  }
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    if (!prepared.peers.is_own(rank)) continue;
    HP_REQUIRE_OK(place_scratch(prepared, rank, options, specs));
    HP_TRY(RankProgram program, make_program(prepared, rank, specs, options));
    programs.push_back(std::move(program));
  }
  return programs;
}

SpecSource Prepared::source(RankId rank) const {
  return {.plan = plan,
          .blocks = blocks,
          .bases = bases,
          .occupancy = occupancy,
          .numbers = numbers,
          .narrow = narrow,
          .collectives = collectives,
          .multiprocessors = of_rank[rank.index()]->device().facts().multiprocessors,
          .staging = [this](TaskId put) { return network->staging(put); },
          .landing = [this](TaskId put) { return network->landing(put); },
          .communicator = [this](std::size_t team,
                                 RankId member) { return &communicators.end(team, member); }};
}

std::vector<std::byte*> places_of(const Peers& peers, const Numbers& numbers) {
  std::vector<std::byte*> places;
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    places.push_back(reinterpret_cast<std::byte*>(peers.arena(rank)) + numbers.offset);
  }
  return places;
}

}  // namespace harpe::cuda
