#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "tests/support/example_forms.h"
#include "verify/verify.h"

// The verifier answers any plan, however corrupt, with a certificate or a finding, never a crash.
namespace harpe::test {
namespace {

class Corruptor {
 public:
  explicit Corruptor(std::uint64_t seed) : random_(seed) {}

  void corrupt(Plan& plan) {
    const std::size_t times = 1 + below(3);
    for (std::size_t i = 0; i < times; ++i) {
      switch (below(6)) {
        case 0:
          corrupt_alloc(any(plan.allocs));
          break;
        case 1:
        case 2:
          corrupt_task(any(plan.tasks));
          break;
        case 3:
          corrupt_edges(plan);
          break;
        case 4:
          corrupt_form(plan.form);
          break;
        default:
          shuffle(plan);
      }
    }
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  template <class T>
  T& any(std::vector<T>& items) {
    return items[below(items.size())];
  }

  template <class Integer>
  Integer number(Integer now) {
    constexpr Integer kFar[] = {-1,
                                0,
                                1,
                                2,
                                7,
                                1000,
                                std::numeric_limits<Integer>::max(),
                                std::numeric_limits<Integer>::min()};
    if (below(2) == 0) return kFar[below(std::size(kFar))];
    return static_cast<Integer>(now + (below(2) == 0 ? -1 : 1));
  }
  template <class Tag>
  void corrupt_id(Id<Tag>& id) {
    id.value = number(id.value);
  }
  template <class Enum>
  void corrupt_enum(Enum& value, int count) {
    value = static_cast<Enum>(below(static_cast<std::size_t>(count)));
  }

  void corrupt_alloc(Alloc& alloc) {
    switch (below(7)) {
      case 0:
        return corrupt_id(alloc.rank);
      case 1:
        alloc.name += "x";
        return;
      case 2:
        alloc.buffer = below(2) == 0 ? "" : "K";
        return;
      case 3:
        return corrupt_enum(alloc.level, 7);
      case 4:
        return corrupt_enum(alloc.dtype, 11);
      case 5:
        if (alloc.holds.empty() || below(3) == 0) {
          alloc.holds.push_back(true);
        } else {
          const std::size_t at = below(alloc.holds.size());
          alloc.holds[at] = !alloc.holds[at];
        }
        return;
      default:
        (below(2) == 0 ? alloc.offset : alloc.bytes) = number(alloc.bytes);
    }
  }

  void corrupt_boxes(std::vector<Box>& boxes) {
    if (boxes.empty() || below(6) == 0) {
      boxes.emplace_back();
      return;
    }
    Box& box = any(boxes);
    if (box.empty() || below(6) == 0) {
      box.push_back({.lo = 0, .hi = 1});
      return;
    }
    Range& range = any(box);
    (below(2) == 0 ? range.lo : range.hi) = number(range.lo);
  }

  void corrupt_refs(std::vector<Ref>& refs) {
    if (refs.empty()) return;
    Ref& ref = any(refs);
    switch (below(6)) {
      case 4:
        ref.when = RouteChoice{.digit = below(3) == 0   ? ""
                                        : below(2) == 0 ? "e1"
                                                        : "t0",
                               .value = number(std::int32_t{1})};
        return;
      case 0:
        return corrupt_id(ref.alloc);
      case 1:
        return corrupt_enum(ref.mode, 4);
      case 2:
        refs.push_back(Ref(ref));
        return;
      case 3:
        refs.pop_back();
        return;
      default:
        corrupt_boxes(ref.boxes);
    }
  }

  void corrupt_task(Task& task) {
    switch (below(9)) {
      case 0:
        return corrupt_id(task.queue);
      case 1:
        return corrupt_enum(task.kind, 10);
      case 2:
        task.nest = below(2) == 0 ? "" : "nowhere";
        return;
      case 3:
        task.stmt = number(task.stmt);
        return;
      case 4:
        return corrupt_boxes(task.iter);
      case 5:
        return corrupt_enum(task.collective, 3);
      case 6:
        task.group = number(task.group);
        return;
      case 7:
        return corrupt_refs(task.reads);
      default:
        corrupt_refs(task.writes);
    }
  }

  void corrupt_edges(Plan& plan) {
    if (!plan.barriers.empty() && below(3) == 0) {
      Barrier& barrier = any(plan.barriers);
      auto& side = below(2) == 0 ? barrier.from : barrier.to;
      if (side.empty() || below(4) == 0) {
        barrier.flag = number(barrier.flag);
      } else {
        corrupt_id(any(side));
      }
      return;
    }
    if (plan.syncs.empty()) return;
    Sync& sync = any(plan.syncs);
    switch (below(4)) {
      case 0:
        return corrupt_id(sync.from);
      case 1:
        return corrupt_id(sync.to);
      case 2:
        return corrupt_enum(sync.kind, 3);
      default:
        sync.flag = number(sync.flag);
    }
  }

  void corrupt_form(NormalForm& form) {
    switch (below(5)) {
      case 0:
        if (!form.splits.empty()) {
          Digit& digit = any(any(form.splits).digits);
          digit.extent = number<std::int64_t>(digit.extent.value_or(1));
        }
        return;
      case 1:
        if (!form.splits.empty()) any(any(form.splits).digits).name = "B.all";
        return;
      case 2:
        if (!form.places.empty()) {
          Place& place = any(form.places);
          place.at.push_back({.digit = "q0", .axes = {"gpu", "gpu"}});
        }
        return;
      case 3:
        form.layouts.push_back(
            {.axis = "Sq", .map = {.function = "table", .args = {std::int64_t{-1}, Name{"q0"}}}});
        return;
      default:
        form.refines.push_back({.axis = "gpu",
                                .parts = {{.name = "a", .size = number<std::int64_t>(4)},
                                          {.name = "b", .size = number<std::int64_t>(2)}}});
    }
  }

  void shuffle(Plan& plan) {
    switch (below(4)) {
      case 0:
        std::swap(any(plan.tasks), any(plan.tasks));
        return;
      case 1:
        plan.tasks.push_back(Task(any(plan.tasks)));
        return;
      case 2:
        plan.allocs.push_back(Alloc(any(plan.allocs)));
        return;
      default:
        plan.queues.pop_back();
    }
  }

  std::mt19937_64 random_;
};

TEST(Corruption, is_answered_by_a_finding) {
  int refused = 0;
  int made = 0;
  std::uint64_t seed = 1;
  for (const Example& example : example_forms()) {
    const Checked<Plan> plan = lower(example.program, example.mesh, example.form);
    ASSERT_TRUE(plan.ok()) << example.form.name;
    for (int round = 0; round < 60; ++round) {
      Plan corrupt = *plan;
      Corruptor(seed++).corrupt(corrupt);
      ++made;
      const auto result = verify(corrupt);
      if (result.ok()) continue;
      ++refused;
      EXPECT_FALSE(render(result.error()).empty());
    }
  }
  EXPECT_GT(refused, made / 2) << "the corruption is not corrupting";
}

}  // namespace
}  // namespace harpe::test
