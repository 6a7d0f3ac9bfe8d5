#include "exec/cuda/executor/fused_copies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/executor/reserved_sms.h"
#include "exec/describe.h"
#include "tests/unit/exec/plans.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kBytes = 3 * device::kCopyGranule + 16;
constexpr DeviceAddress kFrom = 0x1000'0000;
constexpr DeviceAddress kTo = 0x2000'0000;

// Two ranks that copy each other's inputs, pushed by kernels, and what each copy becomes.
struct Pushed {
  Plan plan = test::exchange(2, 12, false);
  Wiring wiring;
  std::vector<TaskSpecs> specs;
  SignalSource signals;
  std::vector<TaskId> sent;  // by rank 0

  Pushed() {
    specs.resize(plan.tasks.size());
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      Task& task = plan.tasks[i];
      const TaskId id(static_cast<std::int64_t>(i));
      if (task.kind != TaskKind::Copy) continue;
      const Alloc& from = plan.allocs[task.reads.front().alloc.index()];
      if (from.level != Level::Home || from.rank == rank_of(plan, id)) continue;
      // Pulled in the fixture: here its source pushes it.
      task.queue = queue_of(from.rank);
      task.via = Via::Tma;
      task.bytes = kBytes;
      specs[i].launches = {CopyLaunch{.to = kTo, .from = kFrom, .bytes = kBytes}};
      if (from.rank == RankId(0)) sent.push_back(id);
    }
    wiring = wire(plan, find_groups(plan));
    for (const TaskId id : sent) {
      wiring.tasks[id.index()] = {.raises = {{.rank = RankId(1), .signal = 0, .added = 4}}};
    }
    signals.target = [](TaskId, const Raise& raise) {
      return std::optional(device::RaiseTarget{.word = reinterpret_cast<std::uint32_t*>(0x400),
                                               .peer_poison = nullptr,
                                               .added = raise.added});
    };
  }

  [[nodiscard]] QueueId queue_of(RankId rank) const {
    std::size_t queue = 0;
    while (plan.queues[queue].rank != rank || plan.queues[queue].kind == QueueKind::Host) ++queue;
    return QueueId(static_cast<std::int64_t>(queue));
  }

  [[nodiscard]] std::optional<FusedCopies> find() const {
    return find_fused_copies(plan, wiring, specs, RankId(0), signals);
  }
};

TEST(FusedCopies, are_counted_by_the_granule_where_they_arrive) {
  Plan plan = test::scatter_gemm(2, 8, 8, 8, "f32", false);
  for (Task& task : plan.tasks) {
    if (task.kind != TaskKind::Copy) continue;
    task.via = Via::Tma;
    task.bytes = kBytes;
  }
  const Wiring wiring = wire(plan, find_groups(plan));
  int signals = 0;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind != TaskKind::Copy) continue;
    EXPECT_EQ(granules_of(plan.tasks[i]), 4U);
    for (const Raise& raise : wiring.tasks[i].raises) {
      EXPECT_EQ(raise.added, 4U);
      EXPECT_EQ(wiring.pages[raise.rank.index()][static_cast<std::size_t>(raise.signal)].arrivals,
                4);
      ++signals;
    }
  }
  EXPECT_GT(signals, 0);
}

TEST(FusedCopies, are_jobs_of_blocks_in_the_order_of_the_tasks) {
  const Pushed it;
  ASSERT_FALSE(it.sent.empty());
  const std::optional<FusedCopies> copies = it.find();
  ASSERT_TRUE(copies.has_value());
  EXPECT_EQ(copies->tasks, it.sent);
  ASSERT_EQ(copies->jobs.size(), it.sent.size());
  EXPECT_EQ(copies->jobs.front().bytes, kBytes);
  EXPECT_NE(copies->jobs.front().done, nullptr);
  EXPECT_EQ(copies->jobs.front().ready.flag, nullptr);
  EXPECT_EQ(copies->blocks % 2, 0);
}

TEST(FusedCopies, are_left_to_copy_engines_where_blocks_cannot_make_them_all) {
  Pushed strided;
  std::get<CopyLaunch>(strided.specs[strided.sent.front().index()].launches.front()).rows = 2;
  EXPECT_FALSE(strided.find().has_value());
  Pushed later;  // waits for more than the beginning
  later.wiring.tasks[later.sent.front().index()].waits = {0};
  EXPECT_FALSE(later.find().has_value());
  Pushed made;  // by a task before
  made.plan.allocs[made.plan.tasks[made.sent.front().index()].reads.front().alloc.index()].level =
      Level::Pack;
  EXPECT_FALSE(made.find().has_value());
  Pushed lost;
  lost.signals.target = [](TaskId, const Raise&) { return std::optional<device::RaiseTarget>(); };
  EXPECT_FALSE(lost.find().has_value());
  Pushed shared;
  shared.signals.is_alone = false;
  EXPECT_FALSE(shared.find().has_value());
}

// Two ranks; each multiplies its own block of A and the one that the other pushes, in one kernel.
struct Fused {
  Plan plan = test::gather_gemm(2, 512, 1024, 256, "f32");
  std::vector<TaskSpecs> specs;
  SignalSource signals;
  TaskId first;  // product of rank 0
  TaskId sent;   // by rank 0

  Fused() {
    specs.resize(plan.tasks.size());
    DeviceAddress rows = 0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      Task& task = plan.tasks[i];
      const TaskId id(static_cast<std::int64_t>(i));
      const RankId rank = rank_of(plan, id);
      if (task.kind == TaskKind::Compute) {
        task.kernel = static_cast<std::int32_t>(rank.value);
        if (rank == RankId(0) && !first.valid()) first = id;
        specs[i].launches = {product(rows += 0x100000)};
      }
      if (task.kind != TaskKind::Copy) continue;
      const Alloc& from = plan.allocs[task.reads.front().alloc.index()];
      if (from.rank == rank) continue;
      std::size_t queue = 0;
      while (plan.queues[queue].rank != from.rank || plan.queues[queue].kind != QueueKind::Ce)
        ++queue;
      task.queue = QueueId(static_cast<std::int64_t>(queue));
      task.via = Via::Tma;
      task.bytes = kBytes;
      specs[i].launches = {CopyLaunch{.to = kTo, .from = kFrom, .bytes = kBytes}};
      if (from.rank == RankId(0)) sent = id;
    }
    signals.waits.resize(16);
    signals.target = [](TaskId, const Raise&) {
      return std::optional(device::RaiseTarget{
          .word = reinterpret_cast<std::uint32_t*>(0x400), .peer_poison = nullptr, .added = 4});
    };
  }

  static GemmSpec product(DeviceAddress rows) {
    GemmSpec spec;
    spec.n = 1024;
    spec.k = 256;
    spec.b = 4096;
    spec.b_stride = 1024;
    spec.panels = {{.rows = 256,
                    .pieces = {{.a = kFrom + rows, .stride = 256, .k_begin = 0, .k_count = 256}},
                    .c = kTo + rows,
                    .c_stride = 1024}};
    return spec;
  }

  // Of rank 0, the unit that `task` is in.
  [[nodiscard]] UnitSpec unit_of(TaskId task) const {
    const Groups groups = find_groups(plan);
    const Wiring wiring = wire(plan, groups);
    for (UnitSpec& unit : make_units(plan, wiring, groups, RankId(0), specs, signals)) {
      if (std::ranges::find(unit.tasks, task) != unit.tasks.end()) return std::move(unit);
    }
    ADD_FAILURE() << "no unit has task " << task.value;
    return {};
  }
};

TEST(FusedCopies, are_made_by_the_kernel_that_begins_with_the_execution) {
  const Fused it;
  ASSERT_TRUE(it.first.valid() && it.sent.valid());
  const UnitSpec unit = it.unit_of(it.sent);
  EXPECT_EQ(unit.tasks.front(), it.first);
  EXPECT_EQ(std::get<GemmSpec>(unit.launches.front()).copies.size(), 1U);
  EXPECT_EQ(unit.silent, std::vector{it.sent});
}

// The other rank may need what is sent for what this kernel stands behind.
TEST(FusedCopies, stay_apart_where_the_kernel_begins_later) {
  Fused it;
  const std::size_t at = it.first.index();
  const auto shift = [&](TaskId& task) {
    if (task.index() >= at) task = TaskId(task.value + 1);
  };
  for (Sync& sync : it.plan.syncs) {
    shift(sync.from);
    shift(sync.to);
  }
  for (Barrier& barrier : it.plan.barriers) {
    for (TaskId& task : barrier.from) shift(task);
    for (TaskId& task : barrier.to) shift(task);
  }
  shift(it.sent);
  Task earlier = it.plan.tasks[at];
  earlier.kernel = -1;  // a launch of its own
  it.plan.tasks.insert(it.plan.tasks.begin() + static_cast<std::ptrdiff_t>(at), earlier);
  it.specs.insert(it.specs.begin() + static_cast<std::ptrdiff_t>(at),
                  TaskSpecs{.actions = {}, .launches = {Fused::product(0)}});
  shift(it.first);
  EXPECT_EQ(it.unit_of(it.first).launches.size(), 1U);
  EXPECT_GT(it.unit_of(it.first).tasks.size(), 1U) << "the kernel is one all the same";
  EXPECT_EQ(it.unit_of(it.sent).tasks, std::vector{it.sent});
}

TEST(FusedCopies, leave_room_for_what_must_run_beside_their_kernel) {
  Fused it;
  it.signals.multiprocessors =
      12 + 2 + ReservedSms::kForKernels;  // to send, to multiply, and beside
  EXPECT_EQ(it.unit_of(it.sent).tasks.front(), it.first);
  --it.signals.multiprocessors;
  EXPECT_EQ(it.unit_of(it.sent).tasks, std::vector{it.sent});
}

TEST(Units, stay_apart_where_no_kernel_does_them_as_one) {
  Fused it;
  const auto cut_at = [&](std::int64_t k) {
    DeviceAddress columns = 0;
    for (std::size_t i = it.first.index(); i < it.plan.tasks.size(); ++i) {
      if (it.plan.tasks[i].kind != TaskKind::Compute) continue;
      if (rank_of(it.plan, TaskId(static_cast<std::int64_t>(i))) != RankId(0)) continue;
      GemmSpec piece = Fused::product(0);
      piece.out = device::Element::F32;
      piece.k = piece.panels.front().pieces.front().k_count = k;
      piece.add = columns > 0;
      piece.b += columns * static_cast<DeviceAddress>(piece.b_stride) * 2;
      columns += static_cast<DeviceAddress>(k);
      it.specs[i].launches = {piece};
    }
    return it.unit_of(it.first).launches;
  };
  EXPECT_EQ(std::get<GemmSpec>(cut_at(128).front()).k, 2 * 128);
  EXPECT_EQ(std::get<GemmSpec>(cut_at(104).front()).k, 104) << "pieces begin at multiples of 64";
}

TEST(FusedCopies, go_with_a_product_that_leaves_blocks_for_them) {
  const std::optional<FusedCopies> copies = Pushed().find();
  ASSERT_TRUE(copies.has_value());
  GemmSpec product;
  product.n = 1024;
  product.k = 1024;
  product.b = 4096;
  product.b_stride = 1024;
  product.panels = {{.rows = 512,
                     .pieces = {{.a = 4096, .stride = 1024, .k_begin = 0, .k_count = 1024}},
                     .c = 8192,
                     .c_stride = 1024}};
  LaunchSpec launch = product;
  ASSERT_TRUE(fuse_copies(*copies, launch, 132));
  EXPECT_EQ(std::get<GemmSpec>(launch).copies.size(), copies->jobs.size());
  EXPECT_EQ(std::get<GemmSpec>(launch).copy_blocks, copies->blocks);
  EXPECT_FALSE(fuse_copies(*copies, launch, 132)) << "it has some already";
  LaunchSpec small = product;
  EXPECT_FALSE(fuse_copies(*copies, small, 4)) << "none would be left to multiply";
  LaunchSpec copy = CopyLaunch{};
  EXPECT_FALSE(fuse_copies(*copies, copy, 132));
}

}  // namespace
}  // namespace harpe::cuda
