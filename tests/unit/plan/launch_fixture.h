#pragma once

#include <utility>

#include "plan/launch_plan.h"
#include "plan/launch_text.h"
#include "tests/unit/plan/fixture.h"

namespace harpe::test {

// The ring, with its transfers in a group that launches can name.
inline Plan grouped_ring() {
  Plan plan = ring();
  for (const std::size_t push : {2, 3}) plan.tasks[push].group = 1;
  return plan;
}

inline launch::Place place(std::int64_t alloc, std::vector<Interval> span) {
  return {.alloc = AllocId(alloc), .span = std::move(span)};
}

inline std::vector<launch::Signal> ring_signals() {
  using launch::SignalKind;
  const auto signal = [](std::int64_t rank, SignalKind kind, std::int32_t index,
                         std::int32_t arrivals, std::vector<TaskId> from, bool is_posted) {
    return launch::Signal{.rank = RankId(rank),
                          .kind = kind,
                          .index = index,
                          .arrivals = arrivals,
                          .from = std::move(from),
                          .is_posted = is_posted};
  };
  std::vector<launch::Signal> signals = {
      signal(0, SignalKind::Credit, 1, 1, {TaskId(11)}, false),
      signal(0, SignalKind::Sync, 3, 8, {TaskId(3)}, false),
      signal(0, SignalKind::Arrival, 1, 2, {TaskId(2), TaskId(3)}, false),
      signal(0, SignalKind::Pulled, 1, 2, {TaskId(2), TaskId(3)}, false),
      signal(1, SignalKind::Barrier, 0, 2, {TaskId(0), TaskId(1)}, false),
      signal(1, SignalKind::Arrived, 2, 1, {TaskId(2)}, true),
      signal(1, SignalKind::Taken, 2, 1, {TaskId(11)}, false),
      signal(1, SignalKind::RingSpace, 0, 1, {}, false)};
  signals[6].is_in_data = true;
  return signals;
}

inline launch::Kernel ring_kernel() {
  using launch::SignalId;
  launch::Kernel kernel;
  kernel.name = "gemm_sm90";
  kernel.arrivals = {
      {.reads = {place(0, {{0, 3}, {0, 5}}), place(1, {{0, 5}, {0, 2}})}, .when = {}},
      {.reads = {place(3, {{3, 6}, {0, 5}}), place(1, {{0, 5}, {0, 2}})}, .when = SignalId(1)}};
  launch::Panel early;
  early.meets = {0, 1};
  early.addends = {{.reads = {place(4, {{0, 6}, {0, 2}})}, .when = SignalId(1)}};
  early.stores = {place(7, {{0, 3}, {0, 2}})};
  early.dtype = DType::BF16;
  early.fused_store = 0;
  launch::Panel late;
  late.reads = {place(4, {{3, 6}, {0, 2}})};
  late.meets = {1};
  late.stores = {place(4, {{3, 6}, {0, 2}})};
  late.adds = true;
  late.maps = {{.nest = "mm", .stmt = 0, .reads = {place(1, {{0, 1}, {0, 2}})}}};
  kernel.panels = {early, late};
  kernel.fused_stores = {{SignalId(5), 0}, {SignalId(4), 8}};
  kernel.fused_copies = {
      {.from = place(0, {{0, 3}, {0, 5}}), .to = place(8, {{0, 3}, {0, 5}}), .raises = SignalId(4)},
      {.from = place(0, {{0, 1}, {0, 5}}), .to = place(10, {{0, 1}, {0, 5}}), .raises = {}}};
  kernel.copy_blocks = 12;
  kernel.variant = "128x256x4 cut 2";
  return kernel;
}

inline launch::Kernel plain_kernel(std::string name) {
  launch::Kernel kernel;
  kernel.name = std::move(name);
  return kernel;
}

inline Blocks blocks_of(const Plan& plan) {
  return Blocks::make(plan.program, plan.mesh, plan.form).value();
}

// Every kind of line with every field; the plan is not meaningful.
inline launch::LaunchPlan ring_launches() {
  using launch::LaunchId;
  using launch::SignalId;
  launch::LaunchPlan plan;
  plan.target = "h200 sms 132";
  Alloc box = ring().allocs[3];
  box.name = "nccl box";
  plan.boxes = {box};
  plan.partials16 = {AllocId(4), AllocId(9)};
  plan.signals = ring_signals();
  launch::Launch entry;
  entry.rank = RankId(0);
  entry.queue = QueueId(0);
  entry.does = {TaskId(0)};
  entry.awaits = {SignalId(0)};
  entry.begins_epoch = true;
  launch::Launch fused;
  fused.rank = RankId(0);
  fused.queue = QueueId(1);
  fused.does = {TaskId(4), TaskId(6), TaskId(8)};
  fused.kernels = {ring_kernel(), plain_kernel("move"), plain_kernel("move"), plain_kernel("fold")};
  fused.kernels.back().joins = 8;
  fused.after = {LaunchId(0)};
  fused.begun = {LaunchId(0)};
  fused.reserved_sms = 2;
  fused.raises = {{SignalId(4), 0}, {SignalId(6), 3}};
  launch::Launch exchange;
  exchange.rank = RankId(0);
  exchange.queue = QueueId(2);
  exchange.does = {TaskId(2)};
  exchange.kernels = {plain_kernel("two words")};
  exchange.ready = {{SignalId(2), 1}};
  exchange.all_ready = SignalId(2);
  exchange.pulled = {{SignalId(3), 1}};
  exchange.all_pulled = SignalId(3);
  launch::Launch skipped;
  skipped.rank = RankId(1);
  skipped.queue = QueueId(5);
  skipped.does = {TaskId(3)};
  skipped.is_skipped = true;
  skipped.raises = {{SignalId(1), 0}};
  skipped.raised_by_engine = true;
  launch::Launch landing;
  landing.rank = RankId(1);
  landing.queue = QueueId(2);
  landing.does = {TaskId(2)};
  landing.bounds_epoch = true;
  landing.lands = true;
  landing.awaits = {SignalId(5)};
  plan.launches = {entry, fused, exchange, skipped, landing};
  return plan;
}

}  // namespace harpe::test
