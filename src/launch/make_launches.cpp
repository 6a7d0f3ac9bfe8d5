#include "launch/make_launches.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "launch/exchanges.h"
#include "launch/partials16.h"
#include "launch/passes.h"
#include "plan/launch_signals.h"

namespace harpe::launch {
namespace {

struct Pass {
  std::string_view name;
  void (*run)(Draft&);
};

constexpr std::string_view kBegin = "begin";

constexpr std::array kPasses = {
    Pass{"join_panels", join_panels},       Pass{"batch_rows", batch_rows},
    Pass{"read_in_place", read_in_place},   Pass{"fuse_copies", fuse_copies},
    Pass{"store_at_peers", store_at_peers}, Pass{"add_at_home", add_at_home},
    Pass{"store_at_home", store_at_home},   Pass{"store_replicas", store_replicas},
    Pass{"fuse_maps", fuse_maps},           Pass{"wait_before", wait_before},
    Pass{"reserve_sms", reserve_sms},       Pass{"choose_variants", choose_variants},
    Pass{"signal_in_data", signal_in_data}, Pass{"bound_epochs", bound_epochs},
};

std::string name_of(const Target::Facts& target) {
  std::string name = target.name;
  if (target.sms > 0) name += " sms " + std::to_string(target.sms);
  if (target.shares_sms) name += " shared";
  if (target.takes_turns) name += " turns";
  return name;
}

sync::Wiring wire(const Plan& plan, const sync::Groups& groups, const Target::Facts& target,
                  sync::Grants grants) {
  return target.waits_inside ? sync::wire(plan, groups, target.chunk_bytes, grants)
                             : sync::wire(plan, grants);
}

// A library call ends on a rank only when no member needs that rank's part any more.
void end_by_themselves(const Plan& plan, const Exchanges& exchanges, sync::Wiring& wiring) {
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (exchanges.by_library.contains(plan.tasks[i].group)) sync::end_by_itself(wiring.tasks[i]);
  }
}

LaunchPlan run_passes(Draft& draft, const LaunchOptions& options) {
  if (options.after_pass) options.after_pass(kBegin, draft);
  for (const Pass& pass : kPasses) {
    if (pass.name == options.without) continue;
    draft.pass = pass.name;
    pass.run(draft);
    if (options.after_pass) options.after_pass(pass.name, draft);
  }
  return draft.finish();
}

Exchanges exchanges_of(const Plan& plan, const Blocks& blocks, const Target::Facts& target,
                       const sync::Groups& groups) {
  return choose_exchanges(plan, blocks, target.exchanges, !groups.members.empty());
}

// `grants`: how ranks let others write to their slots.
Checked<LaunchPlan> make_with(const Plan& plan, const Blocks& blocks, const Target& target,
                              const LaunchOptions& options, sync::Grants grants) {
  const Target::Facts& facts = target.facts();
  const sync::Groups found_groups = sync::find_groups(plan);
  const sync::Groups groups = facts.waits_inside ? found_groups : sync::no_groups(plan);
  sync::Wiring wiring = wire(plan, groups, facts, grants);
  const Exchanges exchanges = exchanges_of(plan, blocks, facts, found_groups);
  end_by_themselves(plan, exchanges, wiring);
  std::optional<Plan> boxed;
  if (!exchanges.boxes.empty()) {
    boxed = plan;
    boxed->allocs.insert(boxed->allocs.end(), exchanges.boxes.begin(), exchanges.boxes.end());
  }
  const Plan& whole = boxed ? *boxed : plan;
  std::vector<AllocId> partials16;
  std::unique_ptr<Offers> offers = target.open(whole, blocks, exchanges, partials16);
  HP_TRY(std::vector<AllocId> found, find_partials16(whole, *offers));
  if (!found.empty()) {
    offers.reset();
    partials16 = std::move(found);
    offers = target.open(whole, blocks, exchanges, partials16);
  }
  HP_TRY(Draft draft, Draft::begin({.plan = whole,
                                    .blocks = blocks,
                                    .target = facts,
                                    .offers = *offers,
                                    .groups = groups,
                                    .wiring = wiring},
                                   partials16));
  draft.out.target = name_of(facts);
  draft.out.boxes = exchanges.boxes;
  return run_passes(draft, options);
}

// Whether Exits give credits for kernels that bound executions. A kernel would raise these behind
// its last store, for which its thread blocks have to agree that all have ended, or an Exit behind
// the kernels that follow. The signals of Entries it raises at its start, while it loads.
bool gives_credits(const Plan& plan, const LaunchPlan& launches) {
  std::set<RankId> bounded;
  for (const Launch& launch : launches.launches) {
    if (launch.bounds_epoch) bounded.insert(launch.rank);
  }
  return std::ranges::any_of(launches.launches, [&](const Launch& launch) {
    return bounded.contains(launch.rank) && launch.awaits.empty() && !launch.raises.empty() &&
           plan.tasks[launch.does.front().index()].kind == TaskKind::Exit &&
           are_credits(launches.signals, launch.raises);
  });
}

}  // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names = {kBegin};
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  return names;
}

Exchanges exchanges_of(const Plan& plan, const Blocks& blocks, const Target& target) {
  return exchanges_of(plan, blocks, target.facts(), sync::find_groups(plan));
}

Checked<LaunchPlan> make_launches(const Plan& plan, const Blocks& blocks, const Target& target,
                                  const LaunchOptions& options) {
  HP_REQUIRE_OK(target.check(plan));
  using sync::Grants;
  const Grants grants = target.facts().takes_turns ? Grants::AtEntry : Grants::AtExit;
  HP_TRY(LaunchPlan launches, make_with(plan, blocks, target, options, grants));
  if (!gives_credits(plan, launches)) return launches;
  return make_with(plan, blocks, target, options, Grants::AtEntry);
}

}  // namespace harpe::launch
