#include "exec/cpu/far_puts.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "exec/actions/prepare.h"
#include "exec/cpu/kernels/elementwise.h"
#include "exec/cpu/signals.h"
#include "exec/describe.h"
#include "exec/processes/put_orders.h"
#include "support/check.h"
#include "support/round_up.h"

namespace harpe::cpu {
namespace {

using actions::Assign;
using processes::Partition;

constexpr std::int64_t kImageLine = 64;

DType dtype_of(const Plan& plan, const Ref& ref) { return plan.allocs[ref.alloc.index()].dtype; }

bool converts(const Plan& plan, const Task& task) {
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    if (dtype_of(plan, task.reads[i]) != dtype_of(plan, task.writes[i])) return true;
  }
  return false;
}

std::int64_t elements_of(const Assign& assign) {
  const std::int64_t rows = assign.rows.count() * assign.rows.length();
  return rows * (assign.slots.used.rows == nullptr ? 1 : assign.slots.capacity);
}

// Appends a run; extends the last run if the new one continues it.
void add_run(std::vector<FarPut::Run>& runs, const FarPut::Run& run) {
  if (!runs.empty()) {
    FarPut::Run& last = runs.back();
    if (last.from + last.bytes == run.from && last.to + last.bytes == run.to) {
      last.bytes += run.bytes;
      return;
    }
  }
  runs.push_back(run);
}

// One policy must order all signals of a queue: none covers puts under another policy.
Checked<Ok> check_policies(const Plan& plan, const Partition& partition) {
  std::map<QueueId, std::pair<TaskId, Fence>> first;
  for (const auto& [task, fence] : processes::find_fences(plan)) {
    if (!is_far_put(plan, partition, task)) continue;
    const auto [other, is_new] =
        first.emplace(plan.tasks[task.index()].queue, std::pair(task, fence));
    if (is_new || other->second.second == fence) continue;
    return make_diag(DiagCode::X017, {{"first", other->second.first.value},
                                      {"first_fence", print(other->second.second)},
                                      {"task", task.value},
                                      {"fence", print(fence)}});
  }
  return Ok{};
}

}  // namespace

std::int64_t bounce_bytes(const Plan& plan, const Partition& partition) {
  std::vector<std::int64_t> of_rank(static_cast<std::size_t>(plan.mesh.ranks()));
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskId task(static_cast<std::int64_t>(i));
    if (!is_far_put(plan, partition, task) || !converts(plan, plan.tasks[i])) continue;
    const auto moves = static_cast<std::int64_t>(plan.tasks[i].writes.size());
    of_rank[rank_of(plan, task).index()] +=
        round_up(plan.tasks[i].bytes, kImageLine) + moves * kImageLine;
  }
  return std::ranges::max(of_rank);
}

std::vector<std::optional<FarPut>> prepare_far_puts(const actions::Setting& setting,
                                                    const Partition& partition,
                                                    const Windows& windows) {
  const Plan& plan = setting.plan;
  std::vector<TaskId> far;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskId task(static_cast<std::int64_t>(i));
    if (!partition.is_own(rank_of(plan, task)) || !is_far_put(plan, partition, task)) continue;
    far.push_back(task);
  }
  // Bytes of each rank's room that are taken. Each put's moves fit however they are cut, because
  // elements of one type are packed.
  const std::vector<std::byte*> bounce = windows.bounces();
  const std::int64_t most = bounce_bytes(plan, partition);
  std::vector<std::int64_t> taken(bounce.size());
  std::vector<std::optional<FarPut>> puts(plan.tasks.size());
  for (const auto& [task, order] : processes::order_puts(plan, far)) {
    FarPut put{.process = partition.process_of(destination_of(plan, plan.tasks[task.index()])),
               .fence = order.fence,
               .follows = order.follows};
    const std::size_t rank = rank_of(plan, task).index();
    for (actions::Action& action :
         actions::prepare_moves(setting, plan.tasks[task.index()]).actions) {
      Assign& move = std::get<Assign>(action);
      put.converted.push_back(nullptr);
      if (move.to.dtype != move.from.dtype) {
        const std::int64_t size = size_in_bytes(move.to.dtype);
        const std::int64_t at = round_up(taken[rank], size);
        taken[rank] = at + elements_of(move) * size;
        HP_CHECK(taken[rank] <= most, "room to round in of rank " + std::to_string(rank));
        put.converted.back() = bounce[rank] + at;
      }
      put.moves.push_back(std::move(move));
    }
    puts[task.index()] = std::move(put);
  }
  return puts;
}

void collect_runs(const FarPut& put, const Windows& windows, std::vector<FarPut::Run>& runs) {
  runs.clear();
  const auto offset = [&](const void* address) {
    const auto place = windows.find(static_cast<const std::byte*>(address));
    HP_CHECK(place.has_value(), "a put names memory of windows");
    return place->offset;
  };
  for (std::size_t at = 0; at < put.moves.size(); ++at) {
    const Assign& move = put.moves[at];
    const actions::SlotRows<2>& slots = move.slots;
    if (slots.result != nullptr && slots.used.rows != nullptr) {
      add_run(runs, {offset(slots.used.rows), offset(slots.result), sizeof(std::int32_t)});
    }
    std::byte* rounded = put.converted[at];
    const std::int64_t bytes = move.rows.length() * size_in_bytes(move.to.dtype);
    std::array<std::int64_t, 2> shift{};
    for (std::int64_t row = 0; row < slots.used.of(slots.capacity); ++row) {
      move.rows.for_each([&](const auto& walk) {
        const std::byte* const to =
            actions::element_at(move.to.data, shift[0] + walk.offset(0), move.to.dtype);
        const std::byte* from =
            actions::element_at(move.from.data, shift[1] + walk.offset(1), move.from.dtype);
        if (rounded != nullptr) {
          convert(rounded, move.to.dtype, from, move.from.dtype, move.rows.length());
          from = std::exchange(rounded, rounded + bytes);
        }
        add_run(runs, {offset(from), offset(to), bytes});
      });
      shift[0] += slots.strides[0];
      shift[1] += slots.strides[1];
    }
  }
}

Checked<Ok> check_reach(const Plan& plan, const Partition& partition) {
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskId task(static_cast<std::int64_t>(i));
    if (is_far_put(plan, partition, task)) continue;
    const RankId rank = rank_of(plan, task);
    const int host = partition.host_of(partition.process_of(rank));
    for (const std::vector<Ref>* const refs : {&plan.tasks[i].reads, &plan.tasks[i].writes}) {
      for (const Ref& ref : *refs) {
        const RankId other = plan.allocs[ref.alloc.index()].rank;
        if (partition.host_of(partition.process_of(other)) == host) continue;
        return make_diag(DiagCode::X016, {{"task", i},
                                          {"kind", print(plan.tasks[i].kind)},
                                          {"rank", rank.value},
                                          {"via", print(plan.tasks[i].via)},
                                          {"other", other.value}});
      }
    }
  }
  return check_policies(plan, partition);
}

}  // namespace harpe::cpu
