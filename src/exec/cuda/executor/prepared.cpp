#include "exec/cuda/executor/prepared.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/signals/reserved_sms.h"
#include "exec/cuda/target/bind_kernel.h"
#include "exec/cuda/target/puts.h"
#include "support/check.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

// Groups search kernel arguments for addresses, and padding could contain one.
static_assert(std::has_unique_object_representations_v<device::Bounds>);

// Prepares the launches of one rank of this process.
class ProgramMaker {
 public:
  ProgramMaker(Prepared& prepared, int rank, const CudaOptions& options)
      : prepared_(prepared),
        rank_(rank),
        options_(options),
        library_(*prepared.of_rank[static_cast<std::size_t>(rank)]),
        layouts_(prepared.plan, prepared.blocks),
        memory_(prepared.source(RankId(rank), layouts_)),
        alone_(prepared.plan.tasks.size()) {}

  Checked<RankProgram> make() {
    const Result<Ok, CudaError> current = library_.device().make_current();
    if (!current.ok()) return to_diag(current.error());
    for (std::size_t i = 0; i < prepared_.launches.launches.size(); ++i) {
      const launch::LaunchId id(static_cast<std::int64_t>(i));
      if (launch_of(id).rank == RankId(rank_)) launches_.push_back(id);
    }
    HP_REQUIRE_OK(prepare_alone());
    HP_TRY(std::optional<RankTrace> trace, make_trace());
    std::vector<PreparedLaunch> launches;
    for (const launch::LaunchId id : launches_) {
      HP_TRY(launches.emplace_back(), prepare(id, trace));
    }
    for (auto& [queue, memory] : prepared_.queues) {
      if (prepared_.plan.queues[queue.index()].rank != RankId(rank_)) continue;
      HP_REQUIRE_OK(memory.sums->allocate(library_.device()));
    }
    HP_TRY(SignalKernels kernels, SignalKernels::load(library_));
    return RankProgram::make(rank_, {.plan = &prepared_.plan,
                                     .launch_plan = &prepared_.launches,
                                     .pages = &prepared_.pages,
                                     .peers = &prepared_.peers,
                                     .network = prepared_.network.get(),
                                     .kernels = kernels,
                                     .launches = std::move(launches),
                                     .zero_first = zero_first(),
                                     .trace = std::move(trace),
                                     .drop_signal_of = options_.drop_signal_of,
                                     .stray_at = options_.stray_at,
                                     .delay_seed = options_.delay_seed});
  }

 private:
  [[nodiscard]] const launch::Launch& launch_of(launch::LaunchId id) const {
    return prepared_.launches.launches[id.index()];
  }

  [[nodiscard]] std::optional<Numbers> zero_first() const {
    return prepared_.takes_turns ? std::optional(prepared_.numbers) : std::nullopt;
  }

  // Describes each task's own launches. Tasks of a queue that need scratch memory and that no other
  // launch takes over share it.
  Checked<Ok> prepare_alone() {
    std::map<TaskId, QueueId> needing;
    std::map<QueueId, std::int64_t> most;
    for (const launch::LaunchId id : launches_) {
      const launch::Launch& launch = launch_of(id);
      if (launch.lands || launch.is_skipped) continue;
      for (const TaskId task : launch.does) {
        HP_TRY(const std::int64_t bytes, prepare_alone(task, kNowhere));
        if (bytes == 0 || is_taken_over(prepared_.plan, launch, task)) continue;
        needing[task] = launch.queue;
        most[launch.queue] = std::max(most[launch.queue], bytes);
      }
    }
    for (const auto& [queue, bytes] : most) {
      HP_TRY(prepared_.queues[queue].scratch, DeviceMemory::allocate(library_.device(), bytes));
    }
    for (const auto& [task, queue] : needing) {
      const DeviceAddress at = prepared_.queues.at(queue).scratch->address();
      HP_REQUIRE_OK(prepare_alone(task, reinterpret_cast<std::byte*>(at)));
    }
    return Ok{};
  }

  // Returns how much scratch memory the task needs.
  Checked<std::int64_t> prepare_alone(TaskId task, std::byte* scratch) {
    HP_TRY(TaskSpecs specs, specs_of(memory_, task, scratch));
    alone_[task.index()] = describe_alone(memory_, task, std::move(specs.launches));
    return specs.scratch;
  }

  Checked<std::optional<RankTrace>> make_trace() const {
    if (!options_.trace) return std::optional<RankTrace>();
    HP_TRY(RankTrace trace,
           RankTrace::make(library_, launches_.size(), prepared_.pages.page(RankId(rank_)).size()));
    return std::optional<RankTrace>(std::move(trace));
  }

  // With a trace, each launch has a second version, whose kernels note the signals that they see
  // and what their blocks do, and leave SMs for timestamps.
  Checked<PreparedLaunch> prepare(launch::LaunchId id, std::optional<RankTrace>& trace) {
    const launch::Launch& launch = launch_of(id);
    const BindSource source{.memory = memory_, .alone = alone_, .cells = cells_for(launch)};
    HP_TRY(LaunchSpecs specs, bind(source, launch));
    PreparedLaunch prepared{.id = id, .work = {}};
    for (const LaunchSpec& spec : specs) spec->add_fixed(prepared.fixed);
    if (launch.bounds_epoch) {
      HP_CHECK(bounds_epochs(launch.kernels.front()), "launch plans name kernels that can");
      *specs.front()->bounds() = bounds();
    }
    HP_TRY(prepared.work, make_ready(launch, specs, launch.reserved_sms));
    if (!trace) return prepared;
    // In a trace, separate launches bound the epoch.
    if (launch.bounds_epoch) *specs.front()->bounds() = {};
    for (LaunchSpec& spec : specs) {
      device::WaitContext* const wait = spec->inner_wait();
      if (wait == nullptr) continue;
      wait->sightings = trace->sightings();
      if (specs.size() == 1) {
        HP_TRY(wait->notes, trace->add_notes(launch.does.front()));
      }
    }
    HP_TRY(prepared.traced_work,
           make_ready(launch, specs, std::max(launch.reserved_sms, kForSignals)));
    return prepared;
  }

  // The signals that the rank's Entry, the launch that bounds the epoch, and the Exit await and
  // raise.
  [[nodiscard]] device::Bounds bounds() const {
    device::Bounds bounds{};
    const auto next = [](auto& table, std::int32_t& count) -> auto& {
      HP_CHECK(count < device::kMostBounds, "a launch plan bounds epochs of few signals alone");
      return table[count++];
    };
    bounds.ended = reinterpret_cast<std::uint64_t*>(prepared_.peers.signals(rank_).ended());
    for (const launch::LaunchId id : launches_) {
      const launch::Launch& launch = launch_of(id);
      const TaskId first = launch.does.front();
      const bool is_exit = prepared_.plan.tasks[first.index()].kind == TaskKind::Exit;
      if (launch.begins_epoch) bounds.task = static_cast<std::uint32_t>(first.value);
      // Launches behind the kernel wait by themselves.
      if (!launch.begins_epoch && !launch.bounds_epoch && !is_exit) continue;
      if (is_exit) bounds.exit_task = static_cast<std::uint32_t>(first.value);
      for (const launch::SignalId signal : launch.awaits) {
        device::SignalWait& wait =
            is_exit ? next(bounds.exits, bounds.exit_count) : next(bounds.waits, bounds.wait_count);
        wait = {.wait = wait_for(prepared_.peers, prepared_.network.get(), prepared_.pages, signal),
                .epochs_back = launch.begins_epoch ? 1U : 0U};
      }
      for (const launch::Raise& raise : launch.raises) {
        if (is_lost(launch, raise)) continue;
        device::RaiseTarget& to = launch.begins_epoch ? next(bounds.begins, bounds.begin_count)
                                                      : next(bounds.ends, bounds.end_count);
        to = target_of(prepared_.peers, prepared_.pages, raise);
      }
    }
    return bounds;
  }

  [[nodiscard]] SignalCells cells_for(const launch::Launch& launch) const {
    return {.awaited =
                [this](launch::SignalId signal) {
                  return wait_for(prepared_.peers, prepared_.network.get(), prepared_.pages,
                                  signal);
                },
            .raised =
                [this, &launch](const launch::Raise& raise) {
                  std::optional<device::RaiseTarget> target;
                  if (!is_lost(launch, raise)) {
                    target = target_of(prepared_.peers, prepared_.pages, raise);
                  }
                  return target;
                },
            .is_in_data =
                [this](launch::SignalId signal) { return prepared_.pages[signal].is_in_data; },
            .context = prepared_.peers.page(rank_).context(options_.wait_limit)};
  }

  [[nodiscard]] bool is_lost(const launch::Launch& launch, const launch::Raise& raise) const {
    const auto has = [](const std::vector<TaskId>& tasks, TaskId task) {
      return std::ranges::find(tasks, task) != tasks.end();
    };
    const std::optional<TaskId> lost = options_.drop_signal_of;
    return lost && has(launch.does, *lost) && has(prepared_.pages[raise.signal].from, *lost);
  }

  // With the kernel variants of the launch plan, and `reserved` SMs for other kernels. A traced
  // execution reserves more than the launch plan states, so some blocks may start after others end.
  Checked<Launches> make_ready(const launch::Launch& launch, const LaunchSpecs& specs,
                               int reserved) {
    const Task& first = prepared_.plan.tasks[launch.does.front().index()];
    const int all = library_.device().facts().multiprocessors;
    LaunchTools tools{
        .kernels = library_,
        .multiprocessors = all - reserved,
        .leaves = prepared_.leaves[static_cast<std::size_t>(rank_)].get(),
        .place = {.kernel = first.leaf_kernel, .nest = first.nest, .queue = launch.queue},
        .sums = prepared_.queues[launch.queue].sums};
    Launches ready;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      HP_REQUIRE_OK(specs[i]->check(all - launch.reserved_sms));
      HP_REQUIRE_OK(check_variant(launch, launch.kernels[i], specs[i]));
      tools.variant = launch.kernels[i].variant;
      HP_REQUIRE_OK(ready.add(tools, specs[i]));
    }
    return ready;
  }

  Prepared& prepared_;
  int rank_;
  const CudaOptions& options_;
  KernelLibrary& library_;
  RefLayouts layouts_;
  SpecSource memory_;
  std::vector<TaskAlone> alone_;  // by task
  std::vector<launch::LaunchId> launches_;
};

// The addresses of each rank's numbers.
std::vector<std::byte*> places_of(const Peers& peers, const Numbers& numbers) {
  std::vector<std::byte*> places;
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    places.push_back(reinterpret_cast<std::byte*>(peers.arena(rank)) + numbers.offset);
  }
  return places;
}

}  // namespace

Checked<std::unique_ptr<Prepared>> Prepared::make(const Plan& plan, Blocks blocks,
                                                  launch::LaunchPlan launches,
                                                  const launch::Exchanges& exchanges,
                                                  const OpenPeers& open) {
  Plan own = plan;
  own.allocs.insert(own.allocs.end(), exchanges.boxes.begin(), exchanges.boxes.end());
  CollectiveChoice collectives = bind_exchanges(own, blocks, exchanges);
  const SignalPages pages(launches, plan.mesh.ranks());
  const Numbers numbers = numbers_of(own, blocks);
  HP_TRY(Peers peers, open(numbers.offset + numbers.bytes, pages.most()));
  actions::Occupancy occupancy(own, blocks, places_of(peers, numbers));
  return std::unique_ptr<Prepared>(new Prepared{.plan = std::move(own),
                                                .blocks = std::move(blocks),
                                                .launches = std::move(launches),
                                                .pages = pages,
                                                .peers = std::move(peers),
                                                .network = nullptr,
                                                .libraries = {},
                                                .of_rank = {},
                                                .leaves = {},
                                                .bases = {},
                                                .numbers = numbers,
                                                .occupancy = std::move(occupancy),
                                                .no_scratch = {},
                                                .queues = {},
                                                .narrow = {},
                                                .collectives = std::move(collectives),
                                                .communicators = {},
                                                .uses = {}});
}

Checked<std::optional<library::Nccl>> open_nccl(launch::Exchanges& exchanges,
                                                std::optional<processes::ProcessGroup>& group,
                                                const CudaOptions& options) {
  std::optional<library::Nccl> opened;
  if (exchanges.by_library.empty()) return opened;
  Checked<library::Nccl> nccl = library::Nccl::open(
      {.file = "", .folders = options.library_folders, .toolkits = options.cuda_folders});
  const auto missing = nccl.ok() ? std::nullopt : std::optional(nccl.error());
  Checked<Ok> is_there = Ok{};
  if (group) {
    is_there = group->agree(missing);
  } else if (missing) {
    is_there = *missing;
  }
  if (is_there.ok()) {
    opened = std::move(nccl).value();
    return opened;
  }
  const bool may_pull = options.collectives == CollectiveEngine::Auto;
  if (!may_pull || is_there.error().code == DiagCode::N010) return is_there.error();
  exchanges.refuse_all(render_message(is_there.error()));
  return opened;
}

Checked<Ok> connect_collectives(Prepared& prepared, const std::optional<library::Nccl>& nccl,
                                transport::Exchange* exchange) {
  if (nccl) {
    std::vector<const Device*> devices;
    for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
      devices.push_back(prepared.peers.is_own(rank) ? &prepared.peers.device(rank) : nullptr);
    }
    HP_REQUIRE_OK(
        prepared.communicators.connect(*nccl, prepared.collectives.teams, devices, exchange));
  }
  prepared.uses = uses_of(prepared.plan, prepared.collectives,
                          nccl ? "NCCL " + nccl->version() : std::string());
  return Ok{};
}

void add_libraries(Prepared& prepared, const Nvrtc& compiler, const CudaOptions& options) {
  std::map<CUcontext, KernelLibrary*> known;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    const Device& device = prepared.peers.device_for(rank);
    KernelLibrary*& library = known[device.context()];
    if (library == nullptr) {
      prepared.libraries.push_back(
          std::make_shared<KernelLibrary>(device, compiler, options.kernel_cache));
      library = prepared.libraries.back().get();
    }
    add_library(prepared, *library,
                {.file = "", .folders = options.library_folders, .toolkits = options.cuda_folders});
  }
}

void add_library(Prepared& prepared, KernelLibrary& kernels, const library::Search& search) {
  const auto rank = static_cast<int>(prepared.of_rank.size());
  prepared.of_rank.push_back(&kernels);
  prepared.leaves.push_back(std::make_unique<library::Leaves>(kernels.device(), search));
  prepared.bases.arenas.push_back(reinterpret_cast<std::byte*>(prepared.peers.arena(rank)));
}

Checked<Ok> open_network(Prepared& prepared, transport::Exchange* exchange,
                         const CudaOptions& options) {
  if (sync::puts_of(prepared.plan).empty()) return Ok{};
  launch::RefLayouts layouts(prepared.plan, prepared.blocks);
  const auto put_bytes = put_bytes_of(prepared.source(RankId(0), layouts));
  HP_TRY(prepared.network, Network::open({.plan = &prepared.plan,
                                          .pages = &prepared.pages,
                                          .peers = &prepared.peers,
                                          .put_bytes = put_bytes,
                                          .exchange = exchange,
                                          .options = options.network,
                                          .limit = options.wait_limit}));
  return Ok{};
}

Checked<std::vector<RankProgram>> make_programs(Prepared& prepared, const CudaOptions& options) {
  prepared.narrow = NarrowStates::of(prepared.plan, prepared.bases, prepared.launches.partials16);
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    if (!prepared.peers.is_own(rank)) continue;
    HP_TRY(RankProgram program, ProgramMaker(prepared, rank, options).make());
    programs.push_back(std::move(program));
  }
  return programs;
}

SpecSource Prepared::source(RankId rank, launch::RefLayouts& layouts) const {
  return {.plan = plan,
          .blocks = blocks,
          .layouts = layouts,
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

}  // namespace harpe::cuda
