#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "plan/plan.h"
#include "tests/support/example_forms.h"
#include "verify/verify.h"

// Changes the fence policies of signals behind puts. A plan is refused exactly if two tasks touch
// the same memory and no signal covers the arrival of one of their puts. Giving the signals of the
// findings a policy that the finding names makes the plan right again.
namespace harpe::test {
namespace {

using Random = std::mt19937_64;

constexpr Fence kFences[] = {Fence::PerPut,  Fence::PerDestination, Fence::NicOrdered,
                             Fence::Batched, Fence::OneQuiet,       Fence::Immediate};
constexpr std::size_t kMostTasks = 160;  // of a plan that is checked pair by pair

bool chance(Random& random, double probability) {
  return std::bernoulli_distribution(probability)(random);
}

Fence draw_fence(Random& random) { return kFences[random() % std::size(kFences)]; }

void put_through_nics(NormalForm& form, Random& random) {
  for (NestForm& nest : form.nests) {
    for (NestItem& item : nest.items) {
      auto* const move = std::get_if<Move>(&item);
      if (move == nullptr || move->how == How::Inline) continue;
      move->how = How::Direct;
      move->via = chance(random, 0.7) ? Via::Proxy : Via::Ibgda;
      move->by = Initiator::Src;
      move->fence = draw_fence(random);
    }
  }
}

// A search graph of tasks, waits and accesses: node t is the start of task t, node tasks + t its
// end, which for a put is its arrival; barriers follow.
class Reach {
 public:
  explicit Reach(const Plan& plan)
      : plan_(plan), after_(2 * plan.tasks.size() + plan.barriers.size()) {
    std::vector<std::optional<std::size_t>> last(plan.queues.size());
    for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
      add(task, end_of(task));
      std::optional<std::size_t>& previous = last[plan.tasks[task].queue.index()];
      if (previous) add(puts(*previous) ? *previous : end_of(*previous), task);
      previous = task;
    }
    for (const Sync& sync : plan.syncs) add_signal(sync);
    for (std::size_t id = 0; id < plan.barriers.size(); ++id) {
      const std::size_t node = 2 * plan.tasks.size() + id;
      for (const TaskId from : plan.barriers[id].from) add_drained(from.index(), node);
      for (const TaskId to : plan.barriers[id].to) add(node, to.index());
    }
    for (std::size_t task = 0; task < plan.tasks.size(); ++task) reached_.push_back(from(task));
  }

  // True if one of the tasks ends before the other starts.
  [[nodiscard]] bool ordered(std::size_t a, std::size_t b) const {
    return reached_[a][b] || reached_[b][a];
  }
  [[nodiscard]] bool ends_before(std::size_t a, std::size_t b) const { return reached_[a][b]; }

 private:
  [[nodiscard]] std::size_t end_of(std::size_t task) const { return plan_.tasks.size() + task; }
  [[nodiscard]] bool puts(std::size_t task) const { return is_put(plan_, plan_.tasks[task]); }
  void add(std::size_t before, std::size_t after) { after_[before].push_back(after); }

  [[nodiscard]] bool same_queue(std::size_t a, std::size_t b) const {
    return plan_.tasks[a].queue == plan_.tasks[b].queue;
  }
  [[nodiscard]] RankId to(std::size_t put) const { return destination_of(plan_, plan_.tasks[put]); }

  void add_drained(std::size_t from, std::size_t node) {
    if (!puts(from)) add(end_of(from), node);
    for (std::size_t put = 0; put <= from && puts(from); ++put) {
      if (puts(put) && same_queue(put, from)) add(end_of(put), node);
    }
  }

  void add_signal(const Sync& sync) {
    const std::size_t from = sync.from.index();
    const std::size_t waits = sync.to.index();
    if (!puts(from) || sync.kind == SyncKind::Event) return add_drained(from, waits);
    add(from, waits);
    if (!sync.fence) return;
    const bool told = to(from) == plan_.queues[plan_.tasks[waits].queue.index()].rank;
    for (std::size_t put = 0; put <= from; ++put) {
      if (!puts(put) || !same_queue(put, from)) continue;
      const bool beside = to(put) == to(from);
      const bool covered = *sync.fence == Fence::PerPut           ? put == from
                           : *sync.fence == Fence::Immediate      ? put == from && told
                           : *sync.fence == Fence::PerDestination ? beside
                           : *sync.fence == Fence::OneQuiet       ? true
                                                                  : beside && told;
      if (covered) add(end_of(put), waits);
    }
  }

  // The tasks that start after the end of `task`.
  [[nodiscard]] std::vector<bool> from(std::size_t task) const {
    std::vector<bool> seen(after_.size(), false);
    std::vector<std::size_t> found = {end_of(task)};
    for (std::size_t next = 0; next < found.size(); ++next) {
      for (const std::size_t node : after_[found[next]]) {
        if (!seen[node]) found.push_back(node);
        seen[node] = true;
      }
    }
    return seen;
  }

  const Plan& plan_;
  std::vector<std::vector<std::size_t>> after_;
  std::vector<std::vector<bool>> reached_;
};

// True if two boxes of one slot share blocks, or hold blocks that use the same memory in turn.
bool collide(const Alloc& alloc, const Box& a, const Box& b, bool writes) {
  bool meet = true;
  for (std::size_t digit = 0; digit < a.size(); ++digit) {
    if (!alloc.holds[digit] && a[digit] != b[digit]) return true;
    meet = meet && a[digit].lo < b[digit].hi && b[digit].lo < a[digit].hi;
  }
  return meet && writes;
}

bool collide(const Plan& plan, const Task& a, const Task& b) {
  for (const auto* mine : {&a.reads, &a.writes}) {
    for (const auto* other : {&b.reads, &b.writes}) {
      const bool writes = mine == &a.writes || other == &b.writes;
      for (const Ref& x : *mine) {
        for (const Ref& y : *other) {
          if (x.alloc != y.alloc) continue;
          for (const Box& box : x.boxes) {
            for (const Box& beside : y.boxes) {
              if (collide(plan.allocs[x.alloc.index()], box, beside, writes)) return true;
            }
          }
        }
      }
    }
  }
  return false;
}

bool touches(const Plan& plan, const Task& task, RankId rank) {
  const auto here = [&](const Ref& ref) { return plan.allocs[ref.alloc.index()].rank == rank; };
  return std::ranges::any_of(task.reads, here) || std::ranges::any_of(task.writes, here);
}

bool is_ordered(const Plan& plan) {
  const Reach reach(plan);
  for (std::size_t a = 0; a < plan.tasks.size(); ++a) {
    for (std::size_t b = a + 1; b < plan.tasks.size(); ++b) {
      if (!reach.ordered(a, b) && collide(plan, plan.tasks[a], plan.tasks[b])) return false;
    }
  }
  for (std::size_t exit = 0; exit < plan.tasks.size(); ++exit) {
    if (plan.tasks[exit].kind != TaskKind::Exit) continue;
    const RankId rank = plan.queues[plan.tasks[exit].queue.index()].rank;
    for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
      if (touches(plan, plan.tasks[task], rank) && !reach.ends_before(task, exit)) return false;
    }
  }
  return true;
}

bool is_looked_at(const Plan& plan) {
  const auto has_signal = [](const Sync& sync) { return sync.fence.has_value(); };
  const auto is_odd = [](const Task& task) { return task.kind == TaskKind::Collective; };
  return plan.tasks.size() <= kMostTasks && std::ranges::any_of(plan.syncs, has_signal) &&
         std::ranges::none_of(plan.tasks, is_odd);
}

std::string argument(const Diag& diag, std::string_view name) {
  const auto found = std::ranges::find(diag.args, name, &DiagArg::name);
  return found == diag.args.end() ? "" : std::get<std::string>(found->value);
}

// Gives the signal of a V540 finding one of the policies that the finding names.
void strengthen(Plan& plan, const Diag& finding, Random& random) {
  const std::string reason = argument(finding, "reason");
  const std::string covering = reason.substr(reason.rfind(", and `fence ") + 6);
  std::vector<Fence> named;
  for (const Fence fence : kFences) {
    const std::string word(print(fence));
    const bool first = covering.starts_with("`fence " + word + "`");
    if (first || covering.find("`" + word + "`") != std::string::npos) named.push_back(fence);
  }
  ASSERT_FALSE(named.empty()) << covering;
  const std::size_t sync = std::stoul(reason.substr(5));  // "sync 17 from …"
  plan.syncs.at(sync).fence = named[random() % named.size()];
}

class Policies {
 public:
  void look_at(Plan plan) {
    EXPECT_TRUE(verify(plan).ok());
    EXPECT_TRUE(is_ordered(plan));
    std::vector<std::size_t> words;
    for (std::size_t id = 0; id < plan.syncs.size(); ++id) {
      if (plan.syncs[id].fence) words.push_back(id);
    }
    for (std::uint64_t count = 1 + random_() % 3; count > 0; --count) {
      std::optional<Fence>& fence = plan.syncs[words[random_() % words.size()]].fence;
      fence = chance(random_, 0.2) ? std::nullopt : std::optional(draw_fence(random_));
    }
    const auto result = verify(plan);
    EXPECT_EQ(result.ok(), is_ordered(plan)) << (result.ok() ? "" : render(result.error()));
    ++(result.ok() ? accepted : refused);
    if (!result.ok()) follow_advice(std::move(plan), result.error());
  }

  Random& random() { return random_; }
  int accepted = 0;
  int refused = 0;
  int mended = 0;

 private:
  void follow_advice(Plan plan, Diag finding) {
    const std::size_t most = 2 * plan.syncs.size();
    for (std::size_t step = 0; step < most && finding.code == DiagCode::V540; ++step) {
      strengthen(plan, finding, random_);
      const auto result = verify(plan);
      if (result.ok()) {
        ++mended;
        return;
      }
      EXPECT_NE(render(result.error()), render(finding));
      finding = result.error();
    }
    EXPECT_NE(finding.code, DiagCode::V540) << render(finding);
  }

  Random random_{20};
};

TEST(Fences, a_plan_is_refused_where_a_signal_does_not_cover_what_is_read) {
  Policies policies;
  for (const Example& example : example_forms()) {
    for (int round = 0; round < 8; ++round) {
      NormalForm form = example.form;
      put_through_nics(form, policies.random());
      const Checked<Plan> plan = lower(example.program, example.mesh, form);
      if (!plan.ok() || !is_looked_at(*plan)) continue;
      SCOPED_TRACE(form.name + " round " + std::to_string(round));
      for (int variant = 0; variant < 12; ++variant) policies.look_at(*plan);
    }
  }
  std::printf("%d accepted, %d refused, %d of them mended\n", policies.accepted, policies.refused,
              policies.mended);
  EXPECT_GE(policies.accepted, 100);
  EXPECT_GE(policies.refused, 100);
  EXPECT_GE(policies.mended, 100);
}

}  // namespace
}  // namespace harpe::test
