#include "launch/exchanges.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "plan/ref_layouts.h"
#include "plan/refs.h"
#include "plan/slots.h"
#include "support/check.h"

namespace harpe::launch {
namespace {

using Members = std::vector<TaskId>;  // of one collective, by rank

class Chooser {
 public:
  Chooser(const Plan& plan, const Blocks& blocks, const ExchangeRules& rules)
      : plan_(plan), blocks_(blocks), rules_(rules), boxes_at_(arena_bytes(plan)) {}

  // `for_all`: why all collectives are done by pulls; "" if the library may do them.
  Exchanges choose(std::string for_all) {
    const std::map<std::int32_t, Members> groups = find_groups();
    if (for_all.empty() && !are_in_one_order(groups)) {
      for_all = "a rank's collectives are in several queues";
    }
    for (const auto& [group, members] : groups) {
      std::string reason = for_all.empty() ? reason_against(members) : for_all;
      if (reason.empty() && !add(group, members)) reason = "parts in several pieces";
      if (!reason.empty()) chosen_.by_pulls[group] = std::move(reason);
    }
    return std::move(chosen_);
  }

 private:
  [[nodiscard]] const Task& task(TaskId id) const { return plan_.tasks[id.index()]; }
  [[nodiscard]] const Alloc& alloc_of(const Ref& ref) const {
    const std::size_t own = plan_.allocs.size();
    return ref.alloc.index() < own ? plan_.allocs[ref.alloc.index()]
                                   : chosen_.boxes[ref.alloc.index() - own];
  }

  [[nodiscard]] std::map<std::int32_t, Members> find_groups() const {
    std::map<std::int32_t, Members> groups;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (plan_.tasks[i].kind != TaskKind::Collective) continue;
      groups[plan_.tasks[i].group].emplace_back(static_cast<std::int64_t>(i));
    }
    for (auto& [group, members] : groups) {
      std::ranges::sort(members, {}, [&](TaskId member) { return rank_of(plan_, member); });
    }
    return groups;
  }

  // The library's kernels of a rank run one after the other, so all ranks need the same order. One
  // queue gives it: a verified plan has the groups of a queue in the same order on all ranks.
  [[nodiscard]] bool are_in_one_order(const std::map<std::int32_t, Members>& groups) const {
    std::map<RankId, std::set<QueueId>> queues;
    for (const auto& [group, members] : groups) {
      for (const TaskId member : members) queues[rank_of(plan_, member)].insert(task(member).queue);
    }
    return std::ranges::all_of(queues, [](const auto& rank) { return rank.second.size() == 1; });
  }

  [[nodiscard]] std::string reason_against(const Members& members) const {
    const Task& first = task(members.front());
    const bool sums = first.collective == CollectiveOp::ReduceScatter;
    if (sums && monoid_of(first) != Monoid::Sum) return "sums of several numbers at once";
    if (rules_.engine != ExchangeEngine::Auto) return "";
    if (first.collective == CollectiveOp::AllGather) return below(rules_.least_gathered, first);
    if (!sums || !is_rounded(first)) return "pulls are as fast";
    return below(rules_.least_rounded, first);
  }

  [[nodiscard]] static std::string below(std::int64_t least, const Task& one) {
    if (one.bytes >= least) return "";
    return "pulls are faster below " + std::to_string(least >> 20) + " MiB";
  }

  [[nodiscard]] Monoid monoid_of(const Task& one) const {
    const auto nest = std::ranges::find(plan_.program.nests, one.nest, &Nest::name);
    HP_CHECK(nest != plan_.program.nests.end(), "a sum names its nest");
    return nest->stmts[static_cast<std::size_t>(one.stmt)].monoid;
  }

  [[nodiscard]] bool is_rounded(const Task& sum) const {
    return sum.wire && *sum.wire != alloc_of(sum.writes.front()).dtype;
  }

  // False where the library cannot do the collective.
  [[nodiscard]] bool add(std::int32_t group, const Members& members) {
    const std::size_t boxes = chosen_.boxes.size();
    Exchange exchange;
    for (const TaskId member : members) exchange.members.push_back(rank_of(plan_, member));
    const bool is_sum = task(members.front()).collective == CollectiveOp::ReduceScatter;
    const bool found =
        is_sum ? sum(members, exchange.sums, exchange.parts) : move(members, exchange.parts);
    std::set<std::pair<RankId, RankId>> pairs;
    const bool fits = found && std::ranges::all_of(exchange.parts, [&](const ExchangePart& part) {
                        return pairs.emplace(part.from, part.to).second && is_one_run(part);
                      });
    if (fits) {
      chosen_.by_library.emplace(group, std::move(exchange));
    } else {
      chosen_.boxes.resize(boxes);
    }
    return fits;
  }

  // The member that owns what `ref` reads; none where the owner is not a member.
  [[nodiscard]] std::optional<std::size_t> giver(const Ref& ref, const Members& members) const {
    const RankId rank = alloc_of(ref).rank;
    const auto found =
        std::ranges::find(members, rank, [&](TaskId member) { return rank_of(plan_, member); });
    if (found == members.end()) return std::nullopt;
    return static_cast<std::size_t>(found - members.begin());
  }

  // The parts that every member receives from each member.
  [[nodiscard]] bool move(const Members& members, std::vector<ExchangePart>& parts) const {
    for (const TaskId member : members) {
      const Task& taker = task(member);
      for (std::size_t i = 0; i < taker.reads.size(); ++i) {
        const auto from = giver(taker.reads[i], members);
        if (!from) return false;
        parts.push_back({.from = rank_of(plan_, members[*from]),
                         .to = rank_of(plan_, member),
                         .source = taker.reads[i],
                         .destination = taker.writes[i]});
      }
    }
    return true;
  }

  // Gives every member an inbox for each other member, and outboxes where parts are rounded.
  [[nodiscard]] bool sum(const Members& members, std::map<RankId, SumSteps>& sums,
                         std::vector<ExchangePart>& parts) {
    std::vector<std::int64_t> ends(members.size(), boxes_at_);
    for (std::size_t to = 0; to < members.size(); ++to) {
      const Task& taker = task(members[to]);
      const RankId rank = rank_of(plan_, members[to]);
      Task& fold = sums[rank].fold = taker;
      fold.kind = TaskKind::Fold;
      for (Ref& read : fold.reads) {
        const auto from = giver(read, members);
        if (!from) return false;
        if (*from == to) continue;
        const RankId other = rank_of(plan_, members[*from]);
        Ref given = read;
        read = add_box(taker, rank, ends[to]);
        if (is_rounded(taker)) {
          const Ref out = add_box(taker, other, ends[*from]);
          sums[other].rounds.push_back(copy_by(task(members[*from]), given, out));
          given = out;
        }
        parts.push_back({.from = other, .to = rank, .source = given, .destination = read});
      }
    }
    return true;
  }

  [[nodiscard]] static Task copy_by(const Task& giver, const Ref& from, const Ref& to) {
    Task copy;
    copy.queue = giver.queue;
    copy.kind = TaskKind::Copy;
    copy.reads = {from};
    copy.writes = {to};
    return copy;
  }

  // Adds memory on a rank, behind all of the plan's memory there, for what is sent to the taker.
  [[nodiscard]] Ref add_box(const Task& taker, RankId rank, std::int64_t& end) {
    constexpr std::int64_t kAlign = 512;
    Ref ref = taker.writes.front();
    Alloc box = alloc_of(ref);
    const DType wide = box.dtype;
    box.rank = rank;
    box.level = Level::Inbox;
    box.dtype = taker.wire.value_or(wide);
    box.bytes = box.bytes / size_in_bytes(wide) * size_in_bytes(box.dtype);
    box.offset = (end + kAlign - 1) / kAlign * kAlign;
    box.name += ".box" + std::to_string(box.offset);
    end = box.offset + box.bytes;
    ref.alloc = AllocId(static_cast<std::int64_t>(plan_.allocs.size() + chosen_.boxes.size()));
    ref.mode = WriteMode::Set;
    chosen_.boxes.push_back(std::move(box));
    return ref;
  }

  // The library moves 2-byte elements, and it cannot skip unused rows.
  [[nodiscard]] bool is_one_run(const ExchangePart& part) const {
    const int buffer = blocks_.find_buffer(alloc_of(part.source).buffer);
    if (is_ragged(plan_, blocks_, buffer)) return false;
    const DType dtype = alloc_of(part.source).dtype;
    if (dtype != alloc_of(part.destination).dtype || part.source.when || part.destination.when) {
      return false;
    }
    return size_in_bytes(dtype) % 2 == 0 && is_one_run(part.source) && is_one_run(part.destination);
  }

  // A slot that holds several contents in turn holds one of them at a time.
  [[nodiscard]] bool is_one_run(const Ref& ref) const {
    const Alloc& alloc = alloc_of(ref);
    const int buffer = blocks_.find_buffer(alloc.buffer);
    if (ref.boxes.empty()) return false;
    Region region(alloc.holds.size(), kAll);
    for (std::size_t digit = 0; digit < region.size(); ++digit) {
      if (alloc.holds[digit]) continue;
      const Range& first = ref.boxes.front()[digit];
      const bool is_one =
          first.hi == first.lo + 1 &&
          std::ranges::all_of(ref.boxes, [&](const Box& box) { return box[digit] == first; });
      if (!is_one) return false;
      region[digit] = first.lo;
    }
    return is_contiguous(blocks_, buffer, slot_shape(blocks_, buffer, region), ref.boxes);
  }

  const Plan& plan_;
  const Blocks& blocks_;
  const ExchangeRules& rules_;
  std::int64_t boxes_at_;
  Exchanges chosen_;
};

}  // namespace

void Exchanges::refuse_all(const std::string& reason) {
  for (const auto& [group, exchange] : by_library) by_pulls[group] = reason;
  by_library.clear();
  boxes.clear();
}

Exchanges choose_exchanges(const Plan& plan, const Blocks& blocks, const ExchangeRules& rules,
                           bool waits_inside) {
  std::string for_all;
  if (rules.engine == ExchangeEngine::Pull) {
    for_all = "as asked for";
  } else if (rules.shares_gpus) {
    for_all = "ranks share GPUs, and NCCL wants one for each";
  } else if (waits_inside) {
    for_all = "kernels that wait inside may hold the multiprocessors that NCCL needs";
  }
  return Chooser(plan, blocks, rules).choose(std::move(for_all));
}

}  // namespace harpe::launch
