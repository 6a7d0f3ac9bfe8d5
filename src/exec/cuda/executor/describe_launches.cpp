#include "exec/cuda/executor/describe_launches.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "exec/cuda/actions/loop_nests.h"
#include "exec/cuda/executor/checks.h"
#include "exec/cuda/executor/describe_kernel.h"
#include "exec/cuda/executor/network_layout.h"
#include "exec/cuda/executor/nodes.h"
#include "exec/cuda/executor/puts.h"
#include "exec/cuda/executor/task_specs.h"
#include "exec/describe.h"

namespace harpe::cuda {
namespace {

using launch::Launch;
using launch::LaunchId;
using launch::SignalId;

// Made-up addresses: of ranks' arenas, of signals, and of the images of puts. They are as far apart
// as offsets can reach.
constexpr std::uintptr_t kArenaAt = std::uintptr_t{1} << 44;
constexpr std::uintptr_t kSignalsAt = std::uintptr_t{1} << 61;
constexpr std::uintptr_t kImagesAt = std::uintptr_t{1} << 62;

std::uint32_t* address_of_signal(SignalId signal) {
  return reinterpret_cast<std::uint32_t*>(kSignalsAt + 4 * signal.index());
}

class LaunchDescriber {
 public:
  LaunchDescriber(const Plan& plan, Blocks blocks, const DescribedTarget& target)
      : target_(target),
        own_allocs_(plan.allocs.size()),
        plan_(plan),
        blocks_(std::move(blocks)),
        groups_(find_groups(plan)),
        wiring_(wire(plan, groups_)),
        collectives_(choose_collectives(plan_, blocks_,
                                        {.engine = target.collectives,
                                         .shares_gpus = target.shares_gpus,
                                         .waits_inside = !groups_.members.empty()})),
        numbers_(numbers_of(plan_, blocks_)),
        bases_(make_bases(plan)),
        occupancy_(plan_, blocks_, number_places()) {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (collectives_.by_nccl.contains(plan_.tasks[i].group)) end_by_itself(wiring_.tasks[i]);
    }
    for (const std::vector<PageSignal>& page : wiring_.pages) {
      first_signal_.push_back(signals_);
      signals_ += static_cast<std::int32_t>(page.size());
    }
  }

  Checked<launch::LaunchPlan> describe() {
    place_images();
    HP_TRY(narrow_, find_narrow(source_));
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      HP_TRY(TaskSpecs own, specs_of(source_, TaskId(static_cast<std::int64_t>(i)), kNowhere));
      specs_.push_back(std::move(own));
    }
    out_.target = "h200 sms " + std::to_string(target_.multiprocessors) +
                  (target_.shares_gpus ? " shared" : "");
    out_.partials16 = narrow_.allocs();
    out_.boxes.assign(plan_.allocs.begin() + static_cast<std::ptrdiff_t>(own_allocs_),
                      plan_.allocs.end());
    describe_signals();
    const std::vector<std::vector<UnitSpec>> units = units_of_all();
    number_launches(units);
    KernelPlaces places(source_, out_.partials16);
    for (std::size_t rank = 0; rank < units.size(); ++rank) {
      for (const UnitSpec& unit : units[rank]) {
        HP_REQUIRE_OK(describe_unit(RankId(static_cast<std::int64_t>(rank)), unit, places));
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] static actions::Bases make_bases(const Plan& plan) {
    actions::Bases bases;
    for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
      const auto at = kArenaAt * static_cast<std::uintptr_t>(rank + 1);
      bases.arenas.push_back(reinterpret_cast<std::byte*>(at));
    }
    return bases;
  }

  [[nodiscard]] std::vector<std::byte*> number_places() const {
    std::vector<std::byte*> places = bases_.arenas;
    for (std::byte*& place : places) place += numbers_.offset;
    return places;
  }

  // Images of puts lie outside of all arenas, so that no operand in them is taken for a place.
  void place_images() {
    const NetworkLayout layout = lay_out_network(plan_, wiring_, put_bytes_of(source_));
    for (const auto& [put, place] : layout.puts) {
      images_[put] = {place.source, place.destination};
    }
  }

  void describe_signals() {
    for (std::size_t rank = 0; rank < wiring_.pages.size(); ++rank) {
      for (const PageSignal& signal : wiring_.pages[rank]) {
        out_.signals.push_back({.rank = RankId(static_cast<std::int64_t>(rank)),
                                .kind = signal.kind,
                                .index = signal.index,
                                .arrivals = signal.arrivals,
                                .from = signal.producers,
                                .is_posted = signal.is_posted});
      }
    }
  }

  [[nodiscard]] SignalId id_of(RankId rank, std::int32_t signal) const {
    return SignalId(first_signal_[rank.index()] + signal);
  }
  [[nodiscard]] launch::Raise described(const Raise& raise) const {
    return {.signal = id_of(raise.rank, raise.signal), .adds = raise.added};
  }
  [[nodiscard]] std::vector<launch::Raise> described(const std::vector<Raise>& raises) const {
    std::vector<launch::Raise> all;
    for (const Raise& raise : raises) all.push_back(described(raise));
    return all;
  }

  [[nodiscard]] SignalSource signals_of(RankId rank) const {
    SignalSource source;
    std::int32_t index = 0;
    for (const PageSignal& signal : wiring_.pages[rank.index()]) {
      source.waits.push_back({.flag = address_of_signal(id_of(rank, index)),
                              .arrivals = static_cast<std::uint32_t>(signal.arrivals),
                              .name = static_cast<std::uint32_t>(index)});
      ++index;
    }
    source.arena = address_of(bases_.arenas[rank.index()]);
    source.multiprocessors = target_.multiprocessors;
    source.is_alone = !target_.shares_gpus;
    source.target = [this](TaskId, const Raise& raise) {
      return std::optional<device::RaiseTarget>(
          {address_of_signal(id_of(raise.rank, raise.signal)), nullptr, raise.added});
    };
    return source;
  }

  // The executor's, with what a rank lands right behind its Entry.
  [[nodiscard]] std::vector<std::vector<UnitSpec>> units_of_all() const {
    std::vector<std::vector<UnitSpec>> all;
    for (std::size_t at = 0; at < bases_.arenas.size(); ++at) {
      const RankId rank(static_cast<std::int64_t>(at));
      std::vector<UnitSpec> units =
          make_units(plan_, wiring_, groups_, rank, specs_, signals_of(rank));
      const auto entry = std::ranges::find_if(units, [&](const UnitSpec& unit) {
        return task(unit.tasks.front()).kind == TaskKind::Entry;
      });
      std::vector<UnitSpec> landings;
      for (const TaskId put : wiring_.landed[at])
        landings.push_back({.tasks = {put}, .launches = {}});
      units.insert(entry + 1, std::make_move_iterator(landings.begin()),
                   std::make_move_iterator(landings.end()));
      all.push_back(std::move(units));
    }
    return all;
  }

  [[nodiscard]] const Task& task(TaskId id) const { return plan_.tasks[id.index()]; }
  // A put's id on another rank than its own means its landing there.
  [[nodiscard]] bool lands(RankId rank, TaskId first) const {
    return rank_of(plan_, first) != rank;
  }

  void number_launches(const std::vector<std::vector<UnitSpec>>& units) {
    std::int64_t next = 0;
    for (std::size_t rank = 0; rank < units.size(); ++rank) {
      for (const UnitSpec& unit : units[rank]) {
        for (const TaskId id : unit.tasks) {
          launch_of_[{RankId(static_cast<std::int64_t>(rank)), id}] = LaunchId(next);
        }
        ++next;
      }
    }
  }

  [[nodiscard]] std::vector<LaunchId> launches_of(RankId rank,
                                                  const std::vector<TaskId>& tasks) const {
    std::vector<LaunchId> launches;
    for (const TaskId id : tasks) launches.push_back(launch_of_.at({rank, id}));
    return launches;
  }

  Checked<Ok> describe_unit(RankId rank, const UnitSpec& unit, KernelPlaces& places) {
    const TaskId first = unit.tasks.front();
    const TaskWiring& wiring = wiring_.on(plan_, rank, first);
    Launch launch{.rank = rank, .queue = task(first).queue, .does = unit.tasks};
    launch.lands = lands(rank, first);
    launch.is_skipped =
        !launch.lands && unit.launches.empty() && !specs_[first.index()].launches.empty();
    launch.after = launches_of(rank, wiring.after);
    launch.begun = launches_of(rank, unit.behind);
    if (!unit.waits_inside) add_awaited(rank, wiring.waits, launch);
    add_awaited(rank, unit.awaited, launch);
    launch.ready = described(wiring.arrivals);
    if (wiring.arrival) launch.all_ready = id_of(rank, *wiring.arrival);
    launch.pulled = described(wiring.raises_after_pull);
    if (wiring.pulled) launch.all_pulled = id_of(rank, *wiring.pulled);
    add_raises(rank, unit, launch);
    launch.raised_by_engine = unit.raised_by == RaisedBy::Engine;
    launch.reserved_sms = unit.spared;
    launch.begins_epoch = task(first).kind == TaskKind::Entry;
    HP_REQUIRE_OK(add_kernels(unit, places, launch));
    out_.launches.push_back(std::move(launch));
    return Ok{};
  }

  void add_awaited(RankId rank, const std::vector<std::int32_t>& signals, Launch& launch) const {
    for (const std::int32_t signal : signals) launch.awaits.push_back(id_of(rank, signal));
  }

  void add_raises(RankId rank, const UnitSpec& unit, Launch& launch) const {
    for (const TaskId id : unit.tasks) {
      if (std::ranges::find(unit.silent, id) != unit.silent.end()) continue;
      for (const Raise& raise : wiring_.on(plan_, rank, id).raises) {
        launch.raises.push_back(described(raise));
      }
    }
  }

  Checked<Ok> add_kernels(const UnitSpec& unit, KernelPlaces& places, Launch& launch) const {
    std::vector<LaunchSpec> specs = unit.launches;
    if (launch.lands) {
      HP_TRY(TaskSpecs landing, landing_specs_of(source_, unit.tasks.front()));
      specs = std::move(landing.launches);
    }
    places.enter(unit.tasks);
    for (const LaunchSpec& spec : specs) {
      launch.kernels.push_back(describe_kernel(spec, target_.multiprocessors - launch.reserved_sms,
                                               places, signal_names()));
    }
    return Ok{};
  }

  [[nodiscard]] static SignalId signal_at(const std::uint32_t* cell) {
    const auto at = reinterpret_cast<std::uintptr_t>(cell) - kSignalsAt;
    return SignalId(static_cast<std::int64_t>(at / 4));
  }

  [[nodiscard]] static SignalNames signal_names() {
    return {.awaited = [](const device::FlagWait& wait) -> std::optional<SignalId> {
              if (wait.flag == nullptr) return std::nullopt;
              return signal_at(wait.flag);
            },
            .raised = [](const device::RaiseTarget& target) -> launch::Raise {
              return {.signal = signal_at(target.word), .adds = target.added};
            }};
  }

  DescribedTarget target_;
  std::size_t own_allocs_;  // allocations that are the plan's
  Plan plan_;               // with the boxes that exchanges go through
  Blocks blocks_;
  Groups groups_;
  Wiring wiring_;
  CollectiveChoice collectives_;
  Numbers numbers_;
  actions::Bases bases_;
  actions::Occupancy occupancy_;
  NarrowStates narrow_;
  std::map<TaskId, std::pair<std::int64_t, std::int64_t>> images_;  // of puts, in both memories
  SpecSource source_{.plan = plan_,
                     .blocks = blocks_,
                     .bases = bases_,
                     .occupancy = occupancy_,
                     .numbers = numbers_,
                     .narrow = narrow_,
                     .collectives = collectives_,
                     .multiprocessors = target_.multiprocessors,
                     .staging =
                         [this](TaskId put) {
                           return reinterpret_cast<std::byte*>(kImagesAt) + images_.at(put).first;
                         },
                     .landing =
                         [this](TaskId put) {
                           return reinterpret_cast<std::byte*>(kImagesAt) + images_.at(put).second;
                         },
                     .communicator = [](std::size_t, RankId) { return nullptr; }};
  std::vector<std::int32_t> first_signal_;  // by rank
  std::int32_t signals_ = 0;
  std::vector<TaskSpecs> specs_;
  std::map<std::pair<RankId, TaskId>, LaunchId> launch_of_;
  launch::LaunchPlan out_;
};

}  // namespace

Checked<launch::LaunchPlan> describe_launches(const Plan& plan, const DescribedTarget& target) {
  HP_REQUIRE_OK(check_tasks(plan));
  HP_REQUIRE_OK(actions::check_ragged(plan.program));
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  return LaunchDescriber(plan, std::move(blocks), target).describe();
}

}  // namespace harpe::cuda
