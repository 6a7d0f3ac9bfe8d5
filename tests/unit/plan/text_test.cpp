#include "plan/text.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/unit/plan/fixture.h"

namespace harpe {
namespace {

// The plan in `text`; a refusal fails the test with its diagnostic.
Plan parsed(const std::string& text) {
  const Checked<Plan> plan = parse_plan(text, "");
  if (!plan.ok()) {
    ADD_FAILURE() << render(plan.error()) << "\n" << text;
    return {};
  }
  return *plan;
}

void expect_round_trip(const Plan& plan) {
  const std::string text = print_plan(plan);
  const Plan back = parsed(text);
  EXPECT_TRUE(back == plan) << text;
  EXPECT_EQ(print_plan(back), text);
}

TEST(PlanText, is_header_program_mesh_normal_form_and_block) {
  std::ifstream file(std::string(HARPE_SOURCE_DIR) + "/tests/unit/plan/ring.plan");
  const std::string expected((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(print_plan(test::ring()), expected);
  EXPECT_EQ(expected, test::with_hash(test::body_of(expected)));
}

TEST(PlanText, reads_back_as_the_plan_it_was_printed_from) { expect_round_trip(test::ring()); }

TEST(PlanText, carries_a_plan_that_has_nothing_to_do) { expect_round_trip(test::subject()); }

TEST(PlanText, writes_a_box_with_stars_for_whole_digits) {
  const std::vector<std::int32_t> extents = {8, 8, 8, 1, 3};
  EXPECT_EQ(print_box({{0, 8}, {3, 4}, {2, 6}, {0, 1}, {0, 2}}, extents), "[*, 3, 2..6, *, 0..2]");
  EXPECT_EQ(print_box({}, {}), "[]");
}

// Random values in every field of every line, within what a plan may hold.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Plan plan() {
    Plan plan = test::subject();
    for (std::int64_t i = up_to(6); i >= 0; --i) plan.allocs.push_back(alloc());
    for (std::int64_t i = up_to(4); i >= 0; --i) {
      plan.queues.push_back({.rank = RankId(up_to(1)), .kind = word(QueueKind::Multimem)});
    }
    for (std::int64_t i = up_to(8); i > 0; --i) plan.tasks.push_back(task(plan));
    if (plan.tasks.empty()) return plan;
    for (std::int64_t i = up_to(5); i > 0; --i) {
      plan.syncs.push_back({.from = task_id(plan),
                            .to = task_id(plan),
                            .kind = word(SyncKind::Counter),
                            .flag = index_or_none()});
    }
    for (std::int64_t i = up_to(2); i > 0; --i) {
      Barrier barrier;
      for (std::int64_t n = up_to(3); n > 0; --n) barrier.from.push_back(task_id(plan));
      for (std::int64_t n = up_to(3); n > 0; --n) barrier.to.push_back(task_id(plan));
      barrier.flag = index_or_none();
      plan.barriers.push_back(std::move(barrier));
    }
    return plan;
  }

 private:
  std::int64_t up_to(std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(0, last)(random_);
  }
  bool coin() { return up_to(1) == 1; }
  std::size_t index(std::size_t size) {
    return static_cast<std::size_t>(up_to(static_cast<std::int64_t>(size) - 1));
  }
  template <class Enum>
  Enum word(Enum last) {
    return static_cast<Enum>(up_to(static_cast<int>(last)));
  }
  std::int32_t index_or_none() { return static_cast<std::int32_t>(up_to(4)) - 1; }
  TaskId task_id(const Plan& plan) {
    return TaskId(static_cast<std::int64_t>(index(plan.tasks.size())));
  }

  static std::vector<std::int32_t> extents(const std::string& buffer) {
    if (buffer == "A") return {2, 3, 1};
    if (buffer == "B") return {1, 2, 1};
    return {2, 3, 2, 1};
  }

  Alloc alloc() {
    static const std::vector<std::string> kNames = {"A.home",  "mm.A.st0.1", "x.1.0.2", "x.10.5.y",
                                                    "1.first", "two words",  "a..b",    "x.1e5",
                                                    "alloc",   "",           "x."};
    Alloc alloc;
    alloc.rank = RankId(up_to(1));
    alloc.name = kNames[index(kNames.size())];
    alloc.buffer = std::vector<std::string>{"A", "B", "C"}[index(3)];
    alloc.level = word(Level::Pack);
    alloc.dtype = word(DType::Bool);
    for (std::size_t i = 0; i < extents(alloc.buffer).size(); ++i) alloc.holds.push_back(coin());
    alloc.offset = up_to(std::int64_t{1} << 40);
    alloc.bytes = up_to(std::int64_t{1} << 40);
    return alloc;
  }

  std::vector<Box> boxes(const std::vector<std::int32_t>& digits) {
    std::vector<Box> result;
    for (std::int64_t i = up_to(2); i > 0; --i) {
      Box box;
      for (const std::int32_t extent : digits) {
        const auto lo = static_cast<std::int32_t>(up_to(extent - 1));
        box.push_back({lo, static_cast<std::int32_t>(lo + 1 + up_to(extent - lo - 1))});
      }
      result.push_back(std::move(box));
    }
    return result;
  }

  Ref ref(const Plan& plan, WriteMode mode) {
    const std::size_t alloc = index(plan.allocs.size());
    return {.alloc = AllocId(static_cast<std::int64_t>(alloc)),
            .mode = mode,
            .boxes = boxes(extents(plan.allocs[alloc].buffer)),
            .when = {}};
  }

  Task task(const Plan& plan) {
    Task task;
    task.queue = QueueId(static_cast<std::int64_t>(index(plan.queues.size())));
    task.kind = word(TaskKind::Collective);
    if (coin()) {
      task.nest = "mm";
      task.iter = boxes({2, 3, 2, 1, 1});
    }
    for (std::int64_t i = up_to(2); i > 0; --i) task.reads.push_back(ref(plan, WriteMode::Read));
    for (std::int64_t i = up_to(2); i > 0; --i) {
      task.writes.push_back(ref(plan, static_cast<WriteMode>(1 + up_to(2))));
    }
    task.collective = word(CollectiveOp::ReduceScatter);
    task.group = index_or_none();
    task.kernel = index_or_none();
    if (coin()) task.leaf_kernel = coin() ? "gemm_sm90" : "two words, [odd]";
    task.how = word(How::OneShot);
    task.via = word(Via::Multimem);
    task.bytes = up_to(1) * up_to(std::int64_t{1} << 40);
    return task;
  }

  std::mt19937 random_;
};

TEST(PlanText, carries_every_field_of_any_plan) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    expect_round_trip(Generator(seed).plan());
    if (HasFailure()) return;
  }
}

TEST(PlanText, takes_nests_that_are_called_like_keywords) {
  for (const std::string name : {"bulk", "via", "bytes", "all_gather", "kernel", "leaf", "r"}) {
    Plan plan = test::ring();
    plan.program.nests[0].name = name;
    plan.form.nests[0].nest = name;
    for (Task& task : plan.tasks) {
      if (!task.nest.empty()) task.nest = name;
    }
    SCOPED_TRACE(name);
    expect_round_trip(plan);
  }
}

TEST(PlanText, allows_blank_lines_and_comments_in_the_block) {
  std::string body = test::body_of(print_plan(test::ring()));
  body.insert(body.find("  task 0"), "\n  // the tasks\n");
  EXPECT_TRUE(parsed(test::with_hash(body)) == test::ring());
}

TEST(PlanText, prints_and_reads_twenty_thousand_tasks_quickly) {
  Plan plan = test::ring();
  const std::vector<Task> tasks = plan.tasks;
  while (plan.tasks.size() < 20'000) {
    plan.tasks.insert(plan.tasks.end(), tasks.begin(), tasks.end());
    plan.syncs.push_back({.from = TaskId(0), .to = TaskId(1)});
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string text = print_plan(plan);
  const Plan back = parsed(text);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(back == plan);
  EXPECT_LT(elapsed.count(), 3.0) << "seconds; about 0.1 on an idle machine";
}

}  // namespace
}  // namespace harpe
