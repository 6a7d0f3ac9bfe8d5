#include "tests/unit/launch/pass_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plan/refs.h"
#include "plan/text.h"

namespace harpe::launch::passing {
namespace {

const Launch& launch_in(const LaunchPlan& launches, TaskId task) {
  const auto found = std::ranges::find_if(launches.launches, [&](const Launch& launch) {
    return !launch.lands && std::ranges::find(launch.does, task) != launch.does.end();
  });
  return *found;
}

Plan read_plan(const std::string& name) {
  std::ifstream file(HARPE_SOURCE_DIR "/tests/unit/launch/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return parse_plan(text.str(), name).value();
}

}  // namespace

PassRun::PassRun(Plan of, Abilities abilities)
    : plan(std::move(of)),
      blocks(Blocks::make(plan.program, plan.mesh, plan.form).value()),
      can(std::move(abilities)),
      groups(sync::find_groups(plan)),
      wiring(sync::wire(plan, groups, kChunkBytes)),
      facts_(facts_of(can)),
      offers_(plan, blocks, can) {}

void PassRun::run(const std::vector<void (*)(Draft&)>& passes) {
  draft.emplace(Draft::begin({.plan = plan,
                              .blocks = blocks,
                              .target = facts_,
                              .offers = offers_,
                              .groups = groups,
                              .wiring = wiring},
                             {})
                    .value());
  for (void (*const pass)(Draft&) : passes) {
    before_ = draft->plan_so_far();
    draft->decisions.clear();
    pass(*draft);
  }
  behind_ = draft->plan_so_far();
}

const Launch& PassRun::launch_of(std::int64_t task) const {
  return launch_in(behind_, TaskId(task));
}
const Launch& PassRun::launch_before(std::int64_t task) const {
  return launch_in(before_, TaskId(task));
}

std::string PassRun::decided(std::int64_t task) const {
  const auto found = std::ranges::find(draft->decisions, TaskId(task), &Decision::task);
  return found == draft->decisions.end() ? "" : print(*found);
}

std::optional<SignalId> PassRun::signal_from(std::int64_t task, std::int64_t rank) const {
  for (std::size_t i = 0; i < behind_.signals.size(); ++i) {
    const Signal& signal = behind_.signals[i];
    if (signal.rank.value == rank && signal.from == std::vector{TaskId(task)}) {
      return SignalId(static_cast<std::int64_t>(i));
    }
  }
  return std::nullopt;
}

std::int32_t PassRun::add_wait(std::int64_t task, std::int64_t from) {
  std::vector<sync::PageSignal>& page = wiring.pages[rank_of(plan, TaskId(task)).index()];
  const auto signal = static_cast<std::int32_t>(page.size());
  page.push_back({.kind = SignalKind::Sync, .producers = {TaskId(from)}});
  wiring.tasks[static_cast<std::size_t>(task)].waits.push_back(signal);
  return signal;
}

AllocId PassRun::alloc(std::int64_t rank, std::string_view buffer, Level level) const {
  const auto found = std::ranges::find_if(plan.allocs, [&](const Alloc& each) {
    return each.rank.value == rank && each.buffer == buffer && each.level == level;
  });
  return AllocId(found - plan.allocs.begin());
}

std::vector<TaskId> ids(const std::vector<std::int64_t>& tasks) {
  std::vector<TaskId> result;
  for (const std::int64_t task : tasks) result.emplace_back(task);
  return result;
}

std::string refusal(Reason reason, std::int64_t a, std::int64_t b) {
  return print(Decision{.pass = "", .task = {}, .refused = reason, .a = a, .b = b});
}

Plan push_sums() { return read_plan("push_sums.plan"); }

Plan all_sums() { return read_plan("all_sums.plan"); }

Plan parted_sums() { return read_plan("parted_sums.plan"); }

Plan one_shot() { return read_plan("one_shot.plan"); }

Plan states() { return read_plan("states.plan"); }

Plan mapped() { return read_plan("mapped.plan"); }

}  // namespace harpe::launch::passing
