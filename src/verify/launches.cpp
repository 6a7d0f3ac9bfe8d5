#include "verify/launches.h"

#include <algorithm>
#include <map>

namespace harpe::verifier {
namespace {

bool works_on_sms(QueueKind queue) {
  return queue != QueueKind::Host && queue != QueueKind::Ce && queue != QueueKind::Proxy;
}

// The SM budgets that the normal form gives to kernels and transfers.
class Budgets {
 public:
  Budgets(const Plan& plan, std::int64_t sm_count) : plan_(plan), sm_count_(sm_count) {}

  [[nodiscard]] std::int64_t of(const Task& task) const {
    if (task.kind == TaskKind::Compute) return of_nest(task.nest);
    if (task.kind == TaskKind::Copy || task.kind == TaskKind::Collective) return of_move(task);
    return 1;  // short kernels, which never wait inside
  }

 private:
  // The budget of a persistent fusion holds for all its nests.
  [[nodiscard]] std::int64_t of_nest(const std::string& nest) const {
    std::string member = nest;
    std::optional<std::int64_t> sms;
    for (const Fuse& fuse : plan_.form.fuses) {  // a fusion of fusions comes after its members
      if (std::ranges::find(fuse.nests, member) == fuse.nests.end()) continue;
      member = fuse.name;
      if (fuse.persistent && fuse.sm) sms = fuse.sm;
    }
    const auto form = std::ranges::find(plan_.form.nests, nest, &NestForm::nest);
    if (!sms && form != plan_.form.nests.end()) sms = form->leaf.sm;
    return sms.value_or(sm_count_);
  }

  [[nodiscard]] std::int64_t of_move(const Task& task) const {
    std::optional<std::int64_t> sms;
    for (const NestForm& nest : plan_.form.nests) {
      for (const NestItem& item : nest.items) {
        const auto* const move = std::get_if<Move>(&item);
        if (move == nullptr || !move->sm || move->transport() != task.via) continue;
        const bool moves = std::ranges::any_of(task.writes, [&](const Ref& ref) {
          return plan_.allocs[ref.alloc.index()].buffer == move->buffer;
        });
        if (moves) sms = std::max(sms.value_or(0), *move->sm);
      }
    }
    return sms.value_or(kTransferSms);
  }

  const Plan& plan_;
  std::int64_t sm_count_;
};

}  // namespace

Checked<std::vector<Launch>> find_launches(const Plan& plan, const Order& order, const Words& words,
                                           std::int64_t sm_count) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> last;  // (queue, kernel): position
  for (std::int32_t task = 0; task < static_cast<std::int32_t>(plan.tasks.size()); ++task) {
    const std::int32_t kernel = plan.tasks[static_cast<std::size_t>(task)].kernel;
    if (kernel >= 0) last[{order.queue_of(task), kernel}] = order.position_of(task);
  }
  const Budgets budgets(plan, sm_count);
  std::vector<Launch> launches;
  for (std::size_t queue = 0; queue < plan.queues.size(); ++queue) {
    if (!works_on_sms(plan.queues[queue].kind)) continue;
    const auto id = static_cast<std::int32_t>(queue);
    const std::int32_t length = order.queue_length(id);
    std::int32_t opener = 0;  // the first task of the current launch
    for (std::int32_t at = 0; at < length; ++at) {
      const std::int32_t task = order.task_at(id, at);
      const Task& line = plan.tasks[static_cast<std::size_t>(task)];
      const bool inside =
          !launches.empty() && launches.back().queue == id && launches.back().end > at;
      if (inside && line.kernel >= 0 && line.kernel != launches.back().kernel) {
        const std::int32_t closer = order.task_at(id, launches.back().end - 1);
        return make_diag(DiagCode::V531, {{"task", words.task(std::int64_t{closer})},
                                          {"kernel", launches.back().kernel},
                                          {"other", words.task(std::int64_t{task})}});
      }
      if (!inside) {
        opener = task;
        launches.push_back({.rank = plan.queues[queue].rank,
                            .queue = id,
                            .begin = at,
                            .end = line.kernel < 0 ? at + 1 : last.at({id, line.kernel}) + 1,
                            .kernel = line.kernel,
                            .sms = 0,
                            .is_collective = line.kind == TaskKind::Collective});
      }
      // Thread blocks of the kernel do fused transfers.
      const bool counts = task == opener || line.kernel >= 0;
      if (counts) launches.back().sms = std::max(launches.back().sms, budgets.of(line));
    }
  }
  return launches;
}

std::string name_of(const Launch& launch, const Plan& plan, const Order& order,
                    const Words& words) {
  const std::int32_t first = order.task_at(launch.queue, launch.begin);
  const std::int32_t last = order.task_at(launch.queue, launch.end - 1);
  if (launch.kernel < 0) return words.task(std::int64_t{first});
  std::string text = "kernel " + std::to_string(launch.kernel) + " (task";
  text += first == last ? " " + std::to_string(first)
                        : "s " + std::to_string(first) + " to " + std::to_string(last);
  const Task& task = plan.tasks[static_cast<std::size_t>(first)];
  return text + ", " + task.nest + "." + std::to_string(task.stmt) + ")";
}

}  // namespace harpe::verifier
